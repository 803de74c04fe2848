// The set of all cells that a window reaches from a set.
#pragma once

#include "maps/cpu/offset_axes.hpp"

namespace pumice {

/// Every cell that some offset leads to from some cell of `from`, cut to the spatial shape of
/// `options`. Reach::in_to_out gives the outputs of a strided convolution,
/// Reach::out_to_in those of a transposed one.
CoordinateSetPtr reached_cells(const CoordinateSet& from, const KernelWindow& window, Reach reach,
                               const CoordinateOptions& options);

}   // namespace pumice
