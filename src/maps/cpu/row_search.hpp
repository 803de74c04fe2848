// The general way to a kernel map: one lookup for each output row and offset.
#pragma once

#include "maps/cpu/offset_axes.hpp"
#include "maps/cpu/pair_lists.hpp"

namespace pumice {

/// Pairs between the cells of `out` and those of `in` that `window` sends them to. `reach` is
/// the way from `out` to `in`: Reach::in_to_out for a transposed convolution.
KernelPairs search_rows(const CoordinateSet& in, const CoordinateSet& out,
                        const KernelWindow& window, Reach reach);

}   // namespace pumice
