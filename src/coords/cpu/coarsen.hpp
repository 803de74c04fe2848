// Coarsening with a say in the options of the result, for strided outputs.
#pragma once

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

/// The options of `set` with its stride multiplied by `factor`.
CoordinateOptions coarser_options(const CoordinateSet& set, const Axes& factor);

/// The occupied cells of `factor` cells per axis, cut to the spatial shape of `options`.
CoordinateSetPtr coarsen_to(const CoordinateSet& set, const Axes& factor,
                            const CoordinateOptions& options);

}   // namespace pumice
