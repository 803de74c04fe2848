// A handful of rows times a matrix of packed panels: the loop over register tiles that the
// convolution, its weight gradient and the benchmarks share.
#pragma once

#include <algorithm>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {

/// Packed panels of a matrix [channels, columns].
struct Panels {
  const std::byte* data = nullptr;
  std::int64_t element_bytes = 0;
  std::int64_t channels = 0;   // padded to the kernel's step
  std::int64_t columns = 0;
};

/// Rows lie anywhere; column 0 of the operands is `input_offset` and `sums_offset` elements in.
struct BlockRows {
  const void* const* input = nullptr;
  void* const* sums = nullptr;
  std::int64_t count = 0;
  std::int64_t input_offset = 0;
  std::int64_t sums_offset = 0;
};

/// Channels multiplied before going on to the next row: 384 × 16 floats of a panel are 24 KiB, which
/// leaves room in a first-level cache of 32 KiB for six rows beside them. Sums are stored and loaded
/// again in between, which is exact.
inline constexpr std::int64_t kChannelBlock = 384;

inline int log2_of(int vectors) { return vectors >= 8 ? 3 : vectors >= 4 ? 2 : vectors - 1; }

/// `rows` of every group of rows, groups [0, groups), all columns.
inline void multiply_groups(const MicroKernels& kernels, int rows, std::int64_t groups,
                            const BlockRows& block, std::int64_t first_row, const Panels& panels) {
  const std::int64_t panel = kernels.panel();
  const std::int64_t vectors = (panels.columns + kernels.lanes - 1) / kernels.lanes;
  const std::int64_t panel_stride = panels.channels * panel;
  const auto& tiles = kernels.multiply[rows - 1];
  for (std::int64_t channel = 0; channel < panels.channels; channel += kChannelBlock) {
    const std::int64_t channels = std::min(kChannelBlock, panels.channels - channel);
    for (std::int64_t vector = 0; vector < vectors;) {
      const std::int64_t left = vectors - vector;
      int width = kernels.widest[rows - 1];
      while (width > left) width /= 2;
      const Multiply multiply = tiles[log2_of(width)];
      const std::byte* from =
          panels.data + (vector / 2 * panel_stride + channel * panel) * panels.element_bytes;
      for (std::int64_t group = 0; group < groups; ++group) {
        const std::int64_t row = first_row + group * rows;
        multiply(block.input + row, block.input_offset + channel, block.sums + row,
                 block.sums_offset + vector * kernels.lanes, from, panel_stride, channels);
      }
      vector += width;
    }
  }
}

/// sums[r] += input[r] · panels for all rows of the block.
inline void multiply_block(const MicroKernels& kernels, const BlockRows& block,
                           const Panels& panels) {
  const std::int64_t groups = block.count / kGroupRows;
  const auto rest = static_cast<int>(block.count % kGroupRows);
  if (groups > 0) multiply_groups(kernels, kGroupRows, groups, block, 0, panels);
  if (rest > 0) multiply_groups(kernels, rest, 1, block, groups * kGroupRows, panels);
}

}  // namespace pumice::cpu
