// The offsets of a window taken apart by axis. A 3x3x3 kernel has 27 offsets but only 3 distinct
// shifts an axis, so whatever an axis contributes to a key is worked out 9 times, not 81.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <pumice/maps/cell_relation.h>
#include <pumice/shared/floor_division.h>
#include <pumice/maps/kernel_window.hpp>

namespace pumice {

/// Cells one axis may have, both ends included.
struct AxisRange {
  std::int64_t low = 0;
  std::int64_t high = -1;
};
using AxisRanges = std::array<AxisRange, kMaxDimension>;

/// The cells that have a key in `layout`.
AxisRanges ranges_of(const KeyLayout& layout);

class OffsetAxes {
 public:
  OffsetAxes(const KernelWindow& window, Reach reach);

  int dimension() const { return dimension_; }
  std::size_t offsets() const { return component_.size(); }
  /// Distinct values of offset · dilation − padding on an axis.
  const std::vector<std::int64_t>& shifts(int axis) const {
    return shifts_[static_cast<std::size_t>(axis)];
  }
  /// Which of the axis' shifts offset k has.
  std::size_t shift_index(std::size_t k, int axis) const {
    const auto at = static_cast<std::size_t>(axis);
    return component_[k][at] - first_part_[at];
  }

  /// Cells that `from` can reach on an axis.
  AxisRange reach(int axis, AxisRange from) const;

  /// What each axis and shift contributes to the keys of the cells that `cell` is sent to.
  /// `parts` has one entry for each; those outside `ranges` are marked and make `key` invalid.
  void find_parts(const KeyLayout& layout, const AxisRanges& ranges, const std::int64_t* cell,
                  std::vector<std::uint64_t>& parts) const;
  std::size_t part_count() const { return first_part_[static_cast<std::size_t>(dimension_)]; }

  /// The key that offset k leads to, without its batch; has `kNoCell` set when there is none.
  std::uint64_t key(std::size_t k, const std::vector<std::uint64_t>& parts) const {
    const auto& component = component_[k];
    std::uint64_t result = 0;
    for (std::size_t at = 0; at < static_cast<std::size_t>(dimension_); ++at) {
      result |= parts[component[at]];
    }
    return result;
  }
  static constexpr std::uint64_t kNoCell = std::uint64_t{1} << 63;   // keys have 63 bits

 private:
  int dimension_;
  Reach reach_;
  std::array<std::int64_t, kMaxDimension> stride_{};
  std::array<std::vector<std::int64_t>, kMaxDimension> shifts_;
  std::array<std::uint32_t, kMaxDimension + 1> first_part_{};
  std::vector<std::array<std::uint32_t, kMaxDimension>> component_;   // [K], index of a part
};

}   // namespace pumice
