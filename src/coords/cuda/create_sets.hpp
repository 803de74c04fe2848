// Coordinate sets on the device: from rows of coordinates, and coarser ones from finer ones.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "coords/cuda/device_set.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// int32 [rows, 1 + D] on the device.
struct DeviceCoordinates {
  const std::int32_t* data = nullptr;
  RowCountRef rows{};
};

/// What each column of a coordinate list may hold, both ends included; the batch index first.
struct DeclaredColumns {
  std::array<std::int32_t, kMaxDimension + 1> low{};
  std::array<std::int32_t, kMaxDimension + 1> high{};
};

/// What to do where several rows have one coordinate.
enum class Repeats : unsigned char { refuse, merge };

struct CreateOptions {
  KeyLayout layout{};
  DeclaredColumns columns{};   // all of which have a key in `layout`
  Repeats repeats = Repeats::refuse;
  std::string name = "coordinates";   // who is named when something is wrong
  /// The first set's capacity, and those of the sets of its cells of 2, 4, 8 … a side, up to 8 in
  /// all. Every halving must be possible in `layout`.
  std::vector<SetCapacity> capacities{};
  std::span<std::uint32_t> also_zeroed{};   // by the first launch, for whoever comes next
};

struct CreatedSets {
  std::vector<DeviceSet> sets;   // [0] as given, [k] at 2^k cells an axis
  Buffer<std::int32_t> row_of;   // Repeats::merge: for each coordinate its row in sets[0]
  Buffer<std::int32_t> first;    // Repeats::merge: for each row the first coordinate in it
};

/// Rows of sets[0] are the caller's where repeats are refused; elsewhere rows come in key order.
/// One sort for all sets: a fill, an encode, a launch a pass (5 for 42 bits), 2 for the levels.
CreatedSets create_sets(jit::KernelRunner& runner, const DeviceCoordinates& coordinates,
                        const CreateOptions& options);

/// The sets of the cells of `set` of 2^(first_halving + k) a side: no sort. 3 launches.
std::vector<DeviceSet> halve_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                                 int first_halving, std::span<const SetCapacity> capacities,
                                 const std::string& name);

}   // namespace pumice::cuda
