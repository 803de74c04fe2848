// The innermost loops of the kernels, one table for each storage type, picked once for the
// processor at hand. Everything above them (tiles, blocks, groups) is plain C++.
//
// `multiply` is a register tile of a matrix product whose rows are named one by one:
//
//        input[r] ──▶ x x x x ─┐ broadcast          panel: [channels][panel] of the weights
//                              ▼
//   sums[r] ◀── [ 1 … 6 rows ] × [ vectors ]  +=  Σ over channels, ascending, one FMA each
//
// Loading the sums and storing them back costs 12 + 12 accesses of a 6 × 2 tile beside 12 FMA for
// every channel: 3 % at 96 channels. In return no gathered copy of the input and no product matrix
// is ever written. The sum of an output is one chain of FMAs that starts at the loaded value,
// whatever the number of rows and vectors of the call, so how pairs are grouped never shows in the
// bits of a result.
#pragma once

#include <cstdint>
#include <string_view>

#include <pumice/core/dtype.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice::cpu {

/// Rows of a register tile. 6 rows × 2 vectors take 12 of AVX2's 16 registers, 6 × 4 take 24 of the
/// 32 that AVX-512 and NEON have.
inline constexpr int kGroupRows = 6;
/// Vectors of a register tile: 1, 2, 4 or 8.
inline constexpr int kWidths = 4;

/// sums[r][sums_offset + j] += Σ_c input[r][input_offset + c] · panels[…][c][j], for `channels` c
/// and all lanes of the vectors. Two vectors are one panel; panels lie `panel_stride` elements
/// apart. Offsets and strides count elements.
using Multiply = void (*)(const void* const* input, std::int64_t input_offset, void* const* sums,
                          std::int64_t sums_offset, const void* panels, std::int64_t panel_stride,
                          std::int64_t channels);

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

/// One row on its way out of the sums. Pointers may be null.
struct FinishRow {
  const void* sums = nullptr;   // compute type
  const void* scale = nullptr;
  const void* shift = nullptr;
  const void* residual = nullptr;   // storage type
  void* out = nullptr;              // storage type
  std::int64_t channels = 0;
  Activation activation = Activation::none;
  double slope = 0;
};

struct MicroKernels {
  std::string_view target;
  std::int64_t lanes = 0;   // of the compute type in a vector; a panel is two vectors
  /// multiply[rows - 1][log2(vectors)]; null where the tile would not fit the registers.
  Multiply multiply[kGroupRows][kWidths] = {};
  /// The widest tile that `rows` rows should use: few rows need many vectors in flight, or the
  /// latency of the FMA (4 cycles, two a cycle) shows.
  int widest[kGroupRows] = {};
  /// The input of `multiply` is the storage type itself. Otherwise rows are widened first.
  bool reads_storage = false;
  /// Neighbouring channels that lie together in a panel: 2 where the processor multiplies pairs.
  std::int64_t channel_step = 1;
  /// Rows are padded with zeros to a multiple of so many channels.
  std::int64_t channel_multiple = 1;
  /// Where the processor multiplies matrices: all rows of a block at once, in place of `multiply`.
  void (*multiply_rows)(const BlockRows& block, const Panels& panels) = nullptr;
  /// storage row -> compute row
  void (*widen)(const void* row, void* out, std::int64_t channels) = nullptr;
  /// sums[c] += row[c] · weight[c]: depthwise. row is of the storage type.
  void (*add_product)(const void* row, const void* weight, void* sums,
                      std::int64_t channels) = nullptr;
  void (*finish)(const FinishRow& row) = nullptr;

  std::int64_t panel() const { return 2 * lanes; }
};

/// The table for features of that type on this processor.
const MicroKernels& micro_kernels(DType storage);

/// For bf16 where the processor multiplies it faster than widened to f32: pairs of channels times
/// pairs of weights, panels of [channels / 2][panel][2]. Null elsewhere.
const MicroKernels* bf16_pair_kernels();

/// The tables to choose from, null where the processor lacks the instructions.
const MicroKernels* bf16_dot_kernels();      // AVX-512-BF16
const MicroKernels* bf16_matrix_kernels();   // AMX-BF16

}   // namespace pumice::cpu
