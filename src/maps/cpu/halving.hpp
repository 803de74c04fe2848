// The map of a kernel of size 2 and stride 2: every fine cell lies in exactly one coarse cell.
#pragma once

#include "maps/cpu/pair_lists.hpp"

#include <pumice/maps/kernel_window.hpp>

namespace pumice {

/// Whether `window` takes cells two by two and the keys of `coarse` are those of `fine`, shifted.
bool can_pair_by_halving(const KernelWindow& window, const KeyLayout& fine,
                         const KeyLayout& coarse);

/// The pairs, fine rows as inputs; sorted by both. Coarse cells that are not there have none.
KernelPairs pair_by_halving(const CoordinateSet& fine, const CoordinateSet& coarse);

}   // namespace pumice
