// What a layout says of a weight's shape and of its memory.
#include <pumice/nn/weight_layout.hpp>

#include <algorithm>

#include <pumice/core/error.hpp>

namespace pumice::nn {

WeightLayout::WeightLayout(std::span<const std::int64_t> extents, std::span<const int> axes)
    : shape(extents) {
  PUMICE_ENSURES(axes.size() == extents.size() && axes.size() >= 2, axes.size(), " axes of ",
                 extents.size());
  std::copy(axes.begin(), axes.end(), order.begin());
}

Shape WeightLayout::weight_shape() const {
  const auto extent = [&](int axis) { return shape[order[static_cast<std::size_t>(axis)]]; };
  std::int64_t offsets = 1;
  for (int axis = 0; axis + 2 < shape.rank(); ++axis)
    offsets *= extent(axis);
  return {offsets, extent(shape.rank() - 2), extent(shape.rank() - 1)};
}

bool WeightLayout::moves() const {
  int last = -1;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = order[static_cast<std::size_t>(axis)];
    if (shape[from] == 1) continue;
    if (from < last) return true;
    last = from;
  }
  return false;
}

}   // namespace pumice::nn
