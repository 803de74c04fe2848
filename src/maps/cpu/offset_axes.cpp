// Distinct shifts of a window per axis, and the key parts they lead to.
#include "maps/cpu/offset_axes.hpp"

#include <algorithm>

namespace pumice {

AxisRanges ranges_of(const KeyLayout& layout) {
  AxisRanges ranges;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const std::int64_t low = -layout.bias[axis];
    ranges[static_cast<std::size_t>(axis)] = {low,
                                              low + ((std::int64_t{1} << layout.bits[axis]) - 1)};
  }
  return ranges;
}

OffsetAxes::OffsetAxes(const KernelWindow& window, Reach reach)
    : dimension_(window.dimension), reach_(reach) {
  const std::vector<Axes> offsets = window.offsets();
  component_.resize(offsets.size());
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension_); ++at) {
    stride_[at] = window.stride[at];
    const auto shift_of = [&](const Axes& offset) {
      return std::int64_t{offset[at]} * window.dilation[at] - window.padding[at];
    };
    auto& shifts = shifts_[at];
    for (const Axes& offset : offsets)
      shifts.push_back(shift_of(offset));
    std::sort(shifts.begin(), shifts.end());
    shifts.erase(std::unique(shifts.begin(), shifts.end()), shifts.end());
    for (std::size_t k = 0; k < offsets.size(); ++k) {
      const auto found = std::lower_bound(shifts.begin(), shifts.end(), shift_of(offsets[k]));
      component_[k][at] = first_part_[at] + static_cast<std::uint32_t>(found - shifts.begin());
    }
    first_part_[at + 1] = first_part_[at] + static_cast<std::uint32_t>(shifts.size());
  }
}

AxisRange OffsetAxes::reach(int axis, AxisRange from) const {
  const std::int64_t stride = stride_[static_cast<std::size_t>(axis)];
  const std::int64_t least = shifts(axis).front();
  const std::int64_t most = shifts(axis).back();
  if (reach_ == Reach::out_to_in) {
    return {from.low * stride + least, from.high * stride + most};
  }
  return {ceil_divide(from.low - most, stride), floor_divide(from.high - least, stride)};
}

void OffsetAxes::find_parts(const KeyLayout& layout, const AxisRanges& ranges,
                            const std::int64_t* cell, std::vector<std::uint64_t>& parts) const {
  std::size_t part = 0;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension_); ++at) {
    const std::int64_t stride = stride_[at];
    const std::int64_t scaled = cell[at] * stride;
    for (const std::int64_t shift : shifts_[at]) {
      std::int64_t target = 0;
      bool exact = true;
      if (reach_ == Reach::out_to_in) {
        target = scaled + shift;
      } else {
        target = floor_divide(cell[at] - shift, stride);
        exact = target * stride == cell[at] - shift;
      }
      const bool inside = exact && target >= ranges[at].low && target <= ranges[at].high;
      const auto index = static_cast<std::uint64_t>(target + layout.bias[at]);
      parts[part++] = inside ? deposit_bits(index, layout.mask[at]) : kNoCell;
    }
  }
}

}   // namespace pumice
