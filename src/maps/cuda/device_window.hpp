// A kernel window as data on the device.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <pumice/maps/cell_relation.h>
#include <pumice/maps/kernel_window.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Copies the shifts of a window to where kernels run, in one piece; good for any number of maps.
class DeviceWindow {
 public:
  DeviceWindow(jit::KernelRunner& runner, const KernelWindow& window);
  /// For maps on `stream`: the one that this process has of such a window on that device, copied
  /// there once. While a graph is recorded, and of windows that are too large or too many to keep,
  /// one of its own.
  static std::shared_ptr<const DeviceWindow> on(StreamView stream, const KernelWindow& window);

  const KernelWindow& window() const { return window_; }
  /// For errors of its maps: each cut of a map names it, and text takes the host longer than a
  /// launch.
  const std::string& map_name() const { return map_name_; }
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
  /// Where a table begins among the bytes; -1: there is none.
  using Place = std::int64_t;
  static constexpr Place kNone = -1;
  /// What matching by blocks reads; nothing where three blocks an axis do not suffice.
  struct Moves {
    Place cell_move = kNone;
    Place needed_by = kNone;
    std::array<std::int8_t, kMaxDimension> first_step{};
  };
  struct Tables;   // on the host, before they are copied
  static Moves moves_of(Tables& tables, int dimension, const std::vector<std::int32_t>& shifts,
                        int scale, int sign);
  void name_children(Tables& tables, const std::vector<std::int32_t>& shifts);
  void sort_by_parity(Tables& tables, const std::vector<std::int32_t>& shifts);
  template <class T> const T* at(Place place) const {
    return reinterpret_cast<const T*>(reinterpret_cast<const std::byte*>(tables_.data()) + place);
  }

  KernelWindow window_;
  std::string map_name_;
  std::int64_t volume_ = 0;
  std::array<std::int64_t, kMaxDimension> low_{};
  std::array<std::int64_t, kMaxDimension> high_{};
  Buffer<std::uint32_t> tables_;
  Place shift_ = kNone;
  std::array<Moves, 2> level_moves_;   // stride 1, by reach
  Moves finer_moves_;                  // stride 2, from coarser outputs
  Place of_parity_ = kNone;            // stride 2, from finer outputs; one word of offsets
  std::int32_t parity_lanes_ = 0;
  Place of_child_ = kNone;   // stride 2, from coarser outputs, all shifts 0 or 1
};

}   // namespace pumice::cuda
