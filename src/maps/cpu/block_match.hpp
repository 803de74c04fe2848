// Kernel maps by blocks: the fast way.
#pragma once

#include "maps/cpu/offset_axes.hpp"
#include "maps/cpu/pair_lists.hpp"

namespace pumice {

/// Whether the tables of `match_blocks`, which grow with offsets and strides, stay small.
bool can_match_blocks(const KernelWindow& window);

/// The lists that `search_rows` gives, from the same arguments.
KernelPairs match_blocks(const CoordinateSet& in, const CoordinateSet& out,
                         const KernelWindow& window, Reach reach);

}   // namespace pumice
