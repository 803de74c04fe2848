// Output sites that convolutions make for themselves, on a device.
#pragma once

#include <pumice/maps/kernel_window.hpp>

#include "coords/cuda/device_set.hpp"
#include "maps/cuda/device_window.hpp"

namespace pumice::cuda {

/// A set that a plan makes: without waiting, and with what has been made for it before.
struct PlannedSet {
  SetCapacity room{};
  const DeviceWindow* window = nullptr;   // of the convolution
  StatusRecord* status = nullptr;         // where trouble is reported; null: to the stream
};

/// The most cells that one cell can reach: of a strided convolution's inputs (in_to_out) or of a
/// transposed one's (out_to_in).
std::int64_t most_reached(const KernelWindow& window, Reach reach);

/// Of a strided convolution: one output for each occupied coarse cell (`by_cell`), or every cell
/// that an offset reaches. Cut to the spatial shape of `options`. Waits for the number of rows
/// unless it is planned.
CoordinateSetPtr strided_set(const CoordinateSetPtr& in, const KernelWindow& window, bool by_cell,
                             const CoordinateOptions& options, const PlannedSet* planned = nullptr);

/// Every finer cell that a transposed convolution reaches. Waits likewise.
CoordinateSetPtr generated_set(const CoordinateSetPtr& coarse, const KernelWindow& window,
                               const CoordinateOptions& options,
                               const PlannedSet* planned = nullptr);

}   // namespace pumice::cuda
