// Through which offsets of a window the cells of two sets meet, as data.
#pragma once

#include <pumice/shared/key_layout.h>

namespace pumice {

/// Which way a cell of the output is sent to look for an input.
enum class Reach : int32_t {
  out_to_in,   // in = out · stride + shift
  in_to_out,   // out = in · stride + shift: a transposed convolution, whose outputs are finer
};

/// Lanes of a warp that share a row: the offsets of a word of 32, rounded up to a power of two.
PUMICE_SHARED constexpr int lanes_of_row(int64_t volume) {
  return volume > 16 ? 32 : volume > 8 ? 16 : volume > 4 ? 8 : 4;
}

/// How the keys of the two sets hang together; all but `any` let a neighbour's key be computed
/// without taking a key apart.
enum class KeyRelation : int32_t {
  same,           // stride 1, one layout
  in_is_finer,    // stride 2, halved(in layout) == out layout
  out_is_finer,   // the other way round
  any,
};

/// Blocks of inputs that the cells of a block of outputs can reach: three along each of up to four
/// axes, number Σ 3^a · (step along axis a − the first step of that axis). `kNowhere` stands for
/// none of them.
inline constexpr int kMostNeighbours = 81;
inline constexpr int kNowhere = kMostNeighbours;

PUMICE_SHARED constexpr int neighbours_of(int dimension) {
  return dimension == 1 ? 3 : dimension == 2 ? 9 : dimension == 3 ? 27 : 81;
}

inline constexpr uint8_t kNoOffset = 255;
inline constexpr int kParityBegins = (1 << kMaxDimension) + 1;

/// A window as data: one shift an offset, offset · dilation − padding.
struct WindowRef {
  const int32_t* shift = nullptr;   // [volume, dimension]
  int32_t volume = 0;
  int32_t stride[kMaxDimension] = {};
  /// Where three blocks an axis suffice: [words, 64, 32], where an offset leads from a cell of a
  /// block, as number of the neighbour · 64 + cell there, for each neighbour the cells that some
  /// offset takes to it, and how many blocks up the first of the three lies, in blocks of inputs.
  /// Null elsewhere.
  const uint16_t* cell_move = nullptr;
  const uint64_t* needed_by = nullptr;   // [kMostNeighbours]
  int8_t first_step[kMaxDimension] = {};
  /// Stride 2 and one word of offsets: those whose shifts have the parities p, bit a for axis a,
  /// are of_parity[kParityBegins + i] for i from of_parity[p] to of_parity[p + 1]. Null elsewhere.
  const uint8_t* of_parity = nullptr;   // [kParityBegins + volume]
  int32_t parity_lanes = 0;   // lanes that share a cell: as many as the most of a parity, rounded
                              // up to a power of two
  /// Where every shift is 0 or 1 along each axis, so that an output's inputs, twice as fine, are
  /// the cells that it is made of: the offset that leads to each, or kNoOffset. Null elsewhere.
  const uint8_t* of_child = nullptr;   // [2^dimension], by the lowest bits of the input's key
};

/// Through which offsets the cells of two sets meet.
struct CellRelation {
  WindowRef window{};
  Reach reach = Reach::out_to_in;
  KeyRelation keys = KeyRelation::any;
};

/// What moving a key by an offset takes; see maps/neighbour_key.h.
struct OffsetStep {
  uint64_t
      step[kMaxDimension];   // deposited in the finer layout, modulo its axis; `any`: the shift
  uint32_t negative;         // bit a: the step along axis a goes down
  uint16_t exists;           // 0: longer than the axis, so it leads nowhere
  uint16_t is_zero;
};

}   // namespace pumice
