// The key of the cell that an offset leads to, without taking keys apart where that can be avoided.
// The bits of an axis lie scattered over a key; filling the gaps with ones lets a carry run from
// one to the next, so that a whole axis is added to at once:
//
//   key          y1 x1 y0 x0           x of the key and the gaps set   1 x1 1 x0
//   step = +1     0  0  0  1           + the step                      ─ carries over the gaps
//                                      & the bits of x                 the new x
//
// An axis that wraps around has left the layout, where nothing is.
#pragma once

#include <pumice/maps/cell_relation.h>
#include <pumice/platform.h>
#include <pumice/shared/key_layout.h>

namespace pumice {

/// Along one axis; false when it leaves the layout.
PUMICE_DEVICE bool move_axis(uint64_t& key, uint64_t mask, uint64_t step, bool negative) {
  const uint64_t before = key & mask;
  const uint64_t after = ((key | ~mask) + step) & mask;
  key = (key & ~mask) | after;
  return negative ? after < before : after >= before;
}

/// `length` scattered over the bits of an axis, or its negative. Offsets are short: the loop ends
/// with their bits, where depositing all bits of a negative number would take as many as the axis
/// has.
PUMICE_DEVICE uint64_t scatter_step(uint64_t length, bool negative, uint64_t mask) {
  const uint64_t lowest = mask & (~mask + 1);
  uint64_t step = 0;
  for (uint64_t left = mask; left != 0 && length != 0; left &= left - 1, length >>= 1) {
    if ((length & 1) != 0) step |= left & (~left + 1);
  }
  return negative ? ((~step | ~mask) + lowest) & mask : step;
}

/// What it takes to follow offset `k` of a relation.
PUMICE_DEVICE OffsetStep make_step(const CellRelation& relation, const KeyLayout& in,
                                   const KeyLayout& out, int k) {
  const KeyLayout& layout = relation.keys == KeyRelation::out_is_finer ? out : in;
  OffsetStep result{{}, 0, 1, 1};
  PUMICE_UNROLL
  for (int axis = 0; axis < kMaxDimension; ++axis) {
    if (axis >= layout.dimension) continue;
    int64_t shift = relation.window.shift[int64_t{k} * layout.dimension + axis];
    if (shift != 0) result.is_zero = 0;
    if (relation.keys == KeyRelation::any) {
      result.step[axis] = static_cast<uint64_t>(shift);
      continue;
    }
    if (relation.reach == Reach::in_to_out) shift = -shift;
    const int64_t length = shift < 0 ? -shift : shift;
    if (length >> layout.bits[axis] != 0) result.exists = 0;
    if (shift < 0) result.negative |= uint32_t{1} << axis;
    result.step[axis] = scatter_step(static_cast<uint64_t>(length), shift < 0, layout.mask[axis]);
  }
  return result;
}

PUMICE_DEVICE bool move_key(uint64_t& key, const KeyLayout& layout, const OffsetStep& step) {
  bool inside = step.exists != 0;
  PUMICE_UNROLL
  for (int axis = 0; axis < kMaxDimension; ++axis) {
    if (axis >= layout.dimension) continue;
    inside &= move_axis(key, layout.mask[axis], step.step[axis], (step.negative >> axis & 1) != 0);
  }
  return inside;
}

/// `distance` / `stride` where that is a whole number. Both ends of a distance are int32, so its
/// size is a uint32, and the division one that takes no call.
PUMICE_DEVICE bool divide_exactly(int64_t distance, int32_t stride, int64_t& quotient) {
  const auto size = static_cast<uint32_t>(distance < 0 ? -distance : distance);
  const uint32_t times = size / static_cast<uint32_t>(stride);
  quotient = distance < 0 ? -int64_t{times} : int64_t{times};
  return times * static_cast<uint32_t>(stride) == size;
}

/// By coordinates: any strides, any two layouts.
PUMICE_DEVICE bool neighbour_by_cell(const CellRelation& relation, const KeyLayout& in,
                                     const KeyLayout& out, const OffsetStep& step, uint64_t out_key,
                                     uint64_t& key) {
  const int64_t batch = decode_batch(out, out_key);
  if (batch >> in.batch_bits != 0) return false;
  key = in.batch_bits == 0 ? 0 : static_cast<uint64_t>(batch) << in.batch_shift;
  PUMICE_UNROLL
  for (int axis = 0; axis < kMaxDimension; ++axis) {
    if (axis >= in.dimension) continue;
    const int64_t cell = decode_axis(out, out_key, axis);
    const int32_t stride = relation.window.stride[axis];
    const auto shift = static_cast<int64_t>(step.step[axis]);
    int64_t target = cell * stride + shift;
    if (relation.reach == Reach::in_to_out && !divide_exactly(cell - shift, stride, target))
      return false;
    if (!in_layout(in, axis, target)) return false;
    key |= deposit_bits(static_cast<uint64_t>(target + in.bias[axis]), in.mask[axis]);
  }
  return true;
}

/// The key of the input cell that an output cell meets through an offset; false when there is none
/// that could be occupied.
PUMICE_DEVICE bool neighbour_key(const CellRelation& relation, const KeyLayout& in,
                                 const KeyLayout& out, const OffsetStep& step, uint64_t out_key,
                                 uint64_t& key) {
  switch (relation.keys) {
    case KeyRelation::same: key = out_key; return move_key(key, in, step);
    case KeyRelation::in_is_finer: key = out_key << in.dimension; return move_key(key, in, step);
    case KeyRelation::out_is_finer: {
      key = out_key;
      if (!move_key(key, out, step)) return false;
      const bool exact = (key & ((uint64_t{1} << out.dimension) - 1)) == 0;
      key >>= out.dimension;
      return exact;
    }
    default: return neighbour_by_cell(relation, in, out, step, out_key, key);
  }
}

}   // namespace pumice
