// A kernel window as data on the device.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

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
  WindowRef ref() const;
  /// With what there is of tables for two sets whose keys hang together like that.
  WindowRef ref(KeyRelation keys, Reach reach) const;

 private:
  /// What `match_blocks` reads; empty where three blocks an axis do not suffice.
  struct Moves {
    Buffer<std::uint16_t> cell_move;
    Buffer<std::uint64_t> needed_by;
    std::array<std::int8_t, kMaxDimension> first_step{};
  };
  static Moves moves_of(jit::KernelRunner& runner, int dimension,
                        const std::vector<std::int32_t>& shifts, int scale, int sign);
  void name_children(const jit::KernelRunner& runner, const std::vector<std::int32_t>& shifts);
  void sort_by_parity(jit::KernelRunner& runner, const std::vector<std::int32_t>& shifts);

  KernelWindow window_;
  std::int64_t volume_ = 0;
  std::array<std::int64_t, kMaxDimension> low_{};
  std::array<std::int64_t, kMaxDimension> high_{};
  Buffer<std::int32_t> shift_;
  std::array<Moves, 2> level_moves_;   // stride 1, by reach
  Moves finer_moves_;                  // stride 2, from coarser outputs
  Buffer<std::uint8_t> of_parity_;     // stride 2, from finer outputs; one word of offsets
  std::int32_t parity_lanes_ = 0;
  Buffer<std::uint8_t> of_child_;   // stride 2, from coarser outputs, all shifts 0 or 1
};

}   // namespace pumice::cuda
