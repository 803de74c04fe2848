// Output sites that convolutions make for themselves, on a device.
#pragma once

#include <pumice/maps/kernel_window.hpp>

namespace pumice::cuda {

/// Of a strided convolution: one output for each occupied coarse cell (`by_cell`), or every cell
/// that an offset reaches. Cut to the spatial shape of `options`. Waits for the number of rows.
CoordinateSetPtr strided_set(const CoordinateSetPtr& in, const KernelWindow& window, bool by_cell,
                             const CoordinateOptions& options);

/// Every finer cell that a transposed convolution reaches. Waits likewise.
CoordinateSetPtr generated_set(const CoordinateSetPtr& coarse, const KernelWindow& window,
                               const CoordinateOptions& options);

}   // namespace pumice::cuda
