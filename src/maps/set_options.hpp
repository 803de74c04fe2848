// Options of the sets that convolutions make for themselves.
#pragma once

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/maps/kernel_window.hpp>

namespace pumice {

/// Of the outputs of a strided convolution.
CoordinateOptions strided_options(const CoordinateSet& in, const KernelWindow& window);

/// Of the finer outputs of a transposed convolution. A stride that cannot be divided means that the
/// outputs are finer than what was the finest level, and so become it.
CoordinateOptions generated_options(const CoordinateSet& coarse, const KernelWindow& window);

}   // namespace pumice
