// A handful of rows times a matrix of packed panels: the loop over register tiles that the
// convolution, its weight gradient and the benchmarks share.
#pragma once

#include <algorithm>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {

/// Channels multiplied before going on to the next row: 384 × 16 floats of a panel are 24 KiB,
/// which leaves room in a first-level cache of 32 KiB for six rows beside them. Sums are stored and
/// loaded again in between, which is exact.
inline constexpr std::int64_t kChannelBlock = 384;

inline int log2_of(int vectors) {
  return vectors >= 8 ? 3 : vectors >= 4 ? 2 : vectors - 1;
}

/// Asks for the cache lines [first, last) of a panel that is needed soon.
inline void prefetch_lines(const std::byte* panel, std::int64_t first, std::int64_t last) {
  for (std::int64_t line = first; line < last; ++line)
    __builtin_prefetch(panel + line * 64);
}

/// How the rows of a block are cut into register tiles: sixes, then up to two smaller ones. 7 is
/// 4 + 3 and 8 is 4 + 4, since tiles of one or two rows run at a third of the speed.
struct RegisterTiles {
  explicit RegisterTiles(std::int64_t count) : sixes(count / kGroupRows) {
    tail[0] = static_cast<int>(count % kGroupRows);
    if (sixes > 0 && (tail[0] == 1 || tail[0] == 2)) {
      --sixes;
      tail[1] = tail[0] + 2;
      tail[0] = 4;
    }
    tails = (tail[0] > 0) + (tail[1] > 0);
  }
  std::int64_t sixes;
  int tail[2] = {0, 0};
  int tails = 0;
};

/// sums[r] += input[r] · panels for all rows of the block. Panel by panel, so that a panel is read
/// from the first-level cache by all rows but the first six; meanwhile the next one is fetched
/// (without that, layers of 96 to 256 channels lose a tenth to waiting for weights).
inline void multiply_block(const MicroKernels& kernels, const BlockRows& block,
                           const Panels& panels) {
  if (block.count == 0) return;
  if (kernels.multiply_rows != nullptr) return kernels.multiply_rows(block, panels);
  const RegisterTiles tiles(block.count);
  const std::int64_t panel = kernels.panel();
  const std::int64_t vectors = (panels.columns + kernels.lanes - 1) / kernels.lanes;
  const std::int64_t panel_stride = panels.channels * panel;
  const int widest = kernels.widest[block.count <= 3 ? block.count - 1 : kGroupRows - 1];
  for (std::int64_t channel = 0; channel < panels.channels; channel += kChannelBlock) {
    const std::int64_t channels = std::min(kChannelBlock, panels.channels - channel);
    for (std::int64_t vector = 0; vector < vectors;) {
      int width = widest;
      while (width > vectors - vector)
        width /= 2;
      const int column = log2_of(width);
      const std::byte* from =
          panels.data + (vector / 2 * panel_stride + channel * panel) * panels.element_bytes;
      const std::int64_t wide = (width + 1) / 2;
      const std::byte* next = from + wide * panel_stride * panels.element_bytes;
      const std::int64_t lines = wide * channels * panel * panels.element_bytes / 64;
      const std::int64_t share = lines / (tiles.sixes + tiles.tails) + 1;
      std::int64_t row = 0, fetched = 0;
      const auto multiply = [&](int rows) {
        prefetch_lines(next, fetched, std::min(fetched + share, lines));
        fetched += share;
        kernels.multiply[rows - 1][column](
            block.input + row, block.input_offset + channel, block.sums + row,
            block.sums_offset + vector * kernels.lanes, from, panel_stride, channels);
        row += rows;
      };
      for (std::int64_t six = 0; six < tiles.sixes; ++six)
        multiply(kGroupRows);
      for (int tail = 0; tail < tiles.tails; ++tail)
        multiply(tiles.tail[tail]);
      vector += width;
    }
  }
}

}   // namespace pumice::cpu
