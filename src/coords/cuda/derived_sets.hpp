// The public operations on sets, for sets on a device. Arguments are checked by the caller; each
// waits for one number of rows where nothing else is said.
#pragma once

#include <pumice/coords/set_operations.hpp>

namespace pumice::cuda {

/// `options` are those of the result.
CoordinateSetPtr coarsen(const CoordinateSet& set, const Axes& factor,
                         const CoordinateOptions& options);
UnionSet unite(const CoordinateSet& left, const CoordinateSet& right,
               const CoordinateOptions& options);
PrunedSet prune(const CoordinateSet& set, const ConstTensorView& keep);
/// Does not wait.
CoordinateSetPtr reorder(const CoordinateSet& set, const ConstTensorView& row);
/// int64 [batch_size + 1] of ranks, on the device. Does not wait.
Tensor batch_ranges(const CoordinateSet& set);

}   // namespace pumice::cuda
