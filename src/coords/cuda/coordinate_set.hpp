// Coordinate sets whose sites are on a device.
#pragma once

#include <string>

#include <pumice/coords/coordinate_set.hpp>

#include "coords/cuda/device_set.hpp"

namespace pumice {

struct DeviceSetBuilder {
  /// `coordinates`, in row order, on the same stream. `bounds` hold all of them.
  static CoordinateSetPtr build(cuda::DeviceSet set, RowCount rows, Tensor coordinates,
                                std::int32_t batch_size, const CoordinateOptions& options,
                                const CoordinateBounds& bounds, StreamView stream);
};

namespace cuda {

/// What kernels see of a set on a device, with the rows that are there and not the room for them.
CoordinateSetRef ref_of(const CoordinateSet& set);

CoordinateSetPtr upload(const CoordinateSet& set, StreamView stream);

/// `made` as a set on the stream and with the batch items of `from`. Waits for the number of rows.
CoordinateSetPtr wait_for_set(jit::KernelRunner& runner, DeviceSet made, const CoordinateSet& from,
                              const CoordinateOptions& options, const CoordinateBounds& bounds);

/// A set of no rows beside `like`.
CoordinateSetPtr empty_set(jit::KernelRunner& runner, const CoordinateSet& like,
                           const CoordinateOptions& options);

}   // namespace cuda
}   // namespace pumice
