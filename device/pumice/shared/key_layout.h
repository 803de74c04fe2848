// How a coordinate becomes a 64-bit key: batch on top, then the axes interleaved bit by bit
// (Morton order), axis 0 in the lowest bit. An axis that has run out of bits drops out of the
// round, so that long and flat scenes do not waste key bits.
//
//      key = [ batch | ... z2 y2 x2 | z1 y1 x1 z0 y0 x0 ]
//                                     \__ local cell __/      block = key >> 6
//
// The lowest six bits name one of the 64 cells of a block: 64 in 1-D, 8x8 in 2-D, 4x4x4 in 3-D,
// 4x4x2x2 in 4-D. Every axis keeps at least its block bits, so the shape of a block never depends
// on the data. Halving every axis is `key >> dimension` (see `halved`).
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kMaxDimension = 4;
inline constexpr int kBlockBits = 6;   // log2(64): one word of occupancy a block
inline constexpr int kBlockCells = 1 << kBlockBits;

/// Bits of axis `axis` among the six bits of a block's local cell, for `dimension` axes.
PUMICE_SHARED constexpr int block_axis_bits(int dimension, int axis) {
  return kBlockBits / dimension + (axis < kBlockBits % dimension ? 1 : 0);
}

struct KeyLayout {
  int32_t dimension = 3;
  int32_t batch_shift = 0;   // position of the batch index in the key
  int32_t batch_bits = 0;
  int32_t bits[kMaxDimension] = {};    // per axis
  int64_t bias[kMaxDimension] = {};    // cell = coordinate + bias, never negative
  uint64_t mask[kMaxDimension] = {};   // key bits that belong to an axis

  constexpr bool operator==(const KeyLayout&) const = default;
};

/// Spreads the low bits of `value` over the set bits of `mask`, lowest first (x86's PDEP).
PUMICE_SHARED constexpr uint64_t deposit_bits(uint64_t value, uint64_t mask) {
#if defined(__BMI2__) && !defined(__CUDACC__)
  if (!__builtin_is_constant_evaluated()) return __builtin_ia32_pdep_di(value, mask);
#endif
  uint64_t result = 0;
  for (; mask != 0; mask &= mask - 1, value >>= 1) {
    if ((value & 1) != 0) result |= mask & (~mask + 1);
  }
  return result;
}

/// Collects the bits of `key` under `mask` into the low bits of the result (x86's PEXT).
PUMICE_SHARED constexpr uint64_t extract_bits(uint64_t key, uint64_t mask) {
#if defined(__BMI2__) && !defined(__CUDACC__)
  if (!__builtin_is_constant_evaluated()) return __builtin_ia32_pext_di(key, mask);
#endif
  uint64_t result = 0;
  for (int position = 0; mask != 0; mask &= mask - 1, ++position) {
    if ((key & mask & (~mask + 1)) != 0) result |= uint64_t{1} << position;
  }
  return result;
}

/// Whether `coordinate` of `axis` has a key in this layout; one outside cannot be occupied.
PUMICE_SHARED constexpr bool in_layout(const KeyLayout& layout, int axis, int64_t coordinate) {
  // Unsigned: the sum of a hostile coordinate and a bias may pass 2^63.
  const uint64_t cell =
      static_cast<uint64_t>(coordinate) + static_cast<uint64_t>(layout.bias[axis]);
  return cell >> layout.bits[axis] == 0;
}

/// The key of (batch, coordinate[0..dimension)). Every coordinate must be `in_layout`.
template <class Integer>
PUMICE_SHARED constexpr uint64_t encode_key(const KeyLayout& layout, int64_t batch,
                                            const Integer* coordinate) {
  uint64_t key = layout.batch_bits == 0 ? 0 : static_cast<uint64_t>(batch) << layout.batch_shift;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const uint64_t cell = static_cast<uint64_t>(coordinate[axis] + layout.bias[axis]);
    key |= deposit_bits(cell, layout.mask[axis]);
  }
  return key;
}

/// The coordinate of `axis` in `key`.
PUMICE_SHARED constexpr int64_t decode_axis(const KeyLayout& layout, uint64_t key, int axis) {
  return static_cast<int64_t>(extract_bits(key, layout.mask[axis])) - layout.bias[axis];
}

PUMICE_SHARED constexpr int64_t decode_batch(const KeyLayout& layout, uint64_t key) {
  return layout.batch_bits == 0 ? 0 : static_cast<int64_t>(key >> layout.batch_shift);
}

/// Number of significant bits in a key: what a radix sort has to look at.
PUMICE_SHARED constexpr int key_bits(const KeyLayout& layout) {
  return layout.batch_shift + layout.batch_bits;
}

/// Whether `halved` exists: every axis must keep its block bits and an even bias.
PUMICE_SHARED constexpr bool can_halve(const KeyLayout& layout) {
  for (int axis = 0; axis < layout.dimension; ++axis) {
    if (layout.bits[axis] <= block_axis_bits(layout.dimension, axis)) return false;
    if (layout.bias[axis] % 2 != 0) return false;
  }
  return true;
}

/// Where a table of blocks starts to look for a block key. The multiplication by 2^64 / golden
/// ratio spreads the low bits in which neighbouring blocks differ over the high half of the
/// product.
PUMICE_SHARED constexpr uint32_t block_hash(uint64_t block_key) {
  return static_cast<uint32_t>((block_key * 0x9e3779b97f4a7c15u) >> 32);
}

/// The layout of `key >> dimension`: the same cells at twice the size (floor semantics).
PUMICE_SHARED constexpr KeyLayout halved(const KeyLayout& layout) {
  KeyLayout result = layout;
  result.batch_shift -= layout.dimension;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    result.bits[axis] -= 1;
    result.bias[axis] /= 2;
    result.mask[axis] = (layout.mask[axis] & (layout.mask[axis] - 1)) >> layout.dimension;
  }
  return result;
}

}   // namespace pumice
