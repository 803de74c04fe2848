// Copies with axes in another order.
#pragma once

#include <array>
#include <span>

#include <pumice/core/tensor.hpp>

namespace pumice {

/// Which axis of a tensor each axis of the copy is, as NumPy's transpose and PyTorch's permute have
/// it; as many as the tensor has.
using AxisOrder = std::array<int, Shape::kMaxRank>;

/// One of several copies: `to`, whose axis i is axis order[i] of `from`.
struct Permutation {
  ConstTensorView from;   // of any shape
  AxisOrder order{};
  TensorView to;   // as many elements, of the same type, in any shape; not where `from` lies
};

/// All of them, on one device in one launch or few; enqueued, nothing waits. UserError for an order
/// that does not name each axis once, for types and numbers of elements that differ, and on a
/// device for elements of other than 2 or 4 bytes.
void permute(std::span<const Permutation> copies);

}   // namespace pumice
