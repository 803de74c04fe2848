// Coordinate sets whose sites are on a device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>

#include "coords/cuda/device_set.hpp"

namespace pumice {

struct DeviceSetBuilder {
  struct Parts {
    cuda::DeviceSet set;
    std::optional<std::int64_t> rows{};   // where the host knows; absent: as the device counts
    Tensor coordinates{};                 // in row order; undefined: decoded when asked for
    std::int32_t batch_size = 1;
    CoordinateOptions options{};
    CoordinateBounds bounds{};   // which all of them keep
  };
  static CoordinateSetPtr build(Parts parts, StreamView stream);
  /// The sites of a set that a device counted, in its memory, for a host that knows how many they
  /// are. Rows come in key order.
  static CoordinateSetPtr counted(const CoordinateSet& set, std::int64_t rows);
};

namespace cuda {

/// What kernels see of a set on a device, with the rows that are there and not the room for them.
CoordinateSetRef ref_of(const CoordinateSet& set);

/// Rows that plans are chosen for: those that the host knows, those of the scan that a plan of sets
/// was learned from, or else the room.
std::int64_t likely_rows(const CoordinateSet& set);

/// From the CPU, and back to it, which waits.
CoordinateSetPtr upload(const CoordinateSet& set, StreamView stream);
CoordinateSetPtr download(const CoordinateSet& set);

/// Where the host is not to wait for a set's number of rows: the room it gets instead.
using Room = std::optional<SetCapacity>;

/// `made` as a set on the stream and with the batch items of `from`. Waits for the number of rows
/// unless it was given room.
CoordinateSetPtr finish_set(jit::KernelRunner& runner, DeviceSet made, const CoordinateSet& from,
                            const CoordinateOptions& options, const CoordinateBounds& bounds,
                            const Room& room);

/// A set of no rows beside `like`.
CoordinateSetPtr empty_set(jit::KernelRunner& runner, const CoordinateSet& like,
                           const CoordinateOptions& options);

/// What is known beforehand of sets that a plan makes from coordinates on a device.
struct PlannedCoordinates {
  KeyLayout layout{};
  CoordinateBounds bounds{};   // what lies outside is reported, and poisons the sets
  std::int32_t batch_size = 1;
  CoordinateOptions options{};
  /// Of the sites themselves, and of the sets of their cells of 2, 4, 8 … a side.
  std::vector<SetCapacity> capacities{};
};
/// The sets that a plan's launches made: the sites, in key order where `coordinates` is undefined,
/// in the rows of `coordinates` else, and their cells, each half as many along an axis.
std::vector<CoordinateSetPtr> build_planned(std::vector<DeviceSet> made, const Tensor& coordinates,
                                            const PlannedCoordinates& planned, StreamView stream);
/// `coordinates`: int32 [room, 1 + D] on the device, of which `rows` are in use. Only enqueues.
/// `also_zeroed` is zero when it is done.
std::vector<CoordinateSetPtr> planned_sets(const Tensor& coordinates, const RowCount& rows,
                                           const PlannedCoordinates& planned,
                                           std::span<std::uint32_t> also_zeroed);

}   // namespace cuda
}   // namespace pumice
