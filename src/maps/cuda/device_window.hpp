// A kernel window as data on the device.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/maps/map_arguments.h>
#include <pumice/maps/kernel_window.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Copies the shifts of a window to where kernels run; good for any number of maps.
class DeviceWindow {
 public:
  DeviceWindow(jit::KernelRunner& runner, const KernelWindow& window);

  const KernelWindow& window() const { return window_; }
  std::int64_t volume() const { return volume_; }
  int dimension() const { return window_.dimension; }
  bool has_stride(std::int32_t stride) const;   // on every axis
  /// Smallest and largest offset · dilation − padding of an axis.
  std::int64_t low(int axis) const { return low_[static_cast<std::size_t>(axis)]; }
  std::int64_t high(int axis) const { return high_[static_cast<std::size_t>(axis)]; }
  /// `by_block`: with the tables of `match_blocks`, for outputs that look for inputs in direction
  /// `reach`.
  WindowRef ref(bool by_block = false, Reach reach = Reach::out_to_in) const;
  /// Whether every shift is at most as long as a block.
  bool is_short() const { return cell_move_[0].size() > 0; }

 private:
  KernelWindow window_;
  std::int64_t volume_ = 0;
  std::array<std::int64_t, kMaxDimension> low_{};
  std::array<std::int64_t, kMaxDimension> high_{};
  Buffer<std::int32_t> shift_;
  std::array<Buffer<std::uint16_t>, 2> cell_move_;   // by reach; empty where shifts are long
  std::array<Buffer<std::uint64_t>, 2> needed_by_;
};

}   // namespace pumice::cuda
