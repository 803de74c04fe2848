// A box of cells, and whether a key lies in it: one comparison an end and axis, because the bits of
// an axis keep their order when they are scattered over a key.
#pragma once

#include <pumice/shared/key_layout.h>

namespace pumice {

/// Both ends included; each is the key bits of its axis alone.
struct KeyBox {
  uint64_t low[kMaxDimension] = {};
  uint64_t high[kMaxDimension] = {};
  int32_t active = 0;   // 0: everything is inside
};

PUMICE_SHARED constexpr bool inside_box(const KeyBox& box, const KeyLayout& layout, uint64_t key) {
  if (box.active == 0) return true;
  bool inside = true;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const uint64_t part = key & layout.mask[axis];
    inside = inside && part >= box.low[axis] && part <= box.high[axis];
  }
  return inside;
}

/// The cells [low, high] of each axis. An axis on which no cell of the layout lies in it leaves
/// nothing inside.
PUMICE_SHARED constexpr KeyBox make_box(const KeyLayout& layout, const int64_t* low,
                                        const int64_t* high) {
  KeyBox box;
  box.active = 1;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const int64_t first = -layout.bias[axis];
    const int64_t last = first + ((int64_t{1} << layout.bits[axis]) - 1);
    const int64_t from = low[axis] > first ? low[axis] : first;
    const int64_t to = high[axis] < last ? high[axis] : last;
    box.low[axis] = from <= to
                        ? deposit_bits(static_cast<uint64_t>(from - first), layout.mask[axis])
                        : layout.mask[axis];
    box.high[axis] =
        from <= to ? deposit_bits(static_cast<uint64_t>(to - first), layout.mask[axis]) : 0;
  }
  return box;
}

}   // namespace pumice
