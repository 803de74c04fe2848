// New coordinate sets out of old ones, where those are. Rows of a new set come in key order unless
// said otherwise; on a device, making one waits for the number of its rows.
#pragma once

#include <span>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

/// One site for every occupied cell of `factor` cells per axis (floor semantics): the output sites
/// of MinkowskiEngine and TorchSparse, and level k of a pyramid.
CoordinateSetPtr coarsen(const CoordinateSet& set, const Axes& factor);

struct UnionSet {
  CoordinateSetPtr set;
  Tensor left_row;    // int32 [rows of left]: row in `set`
  Tensor right_row;   // int32 [rows of right]
};
/// Sites of either. Both must have the same dimension and stride.
UnionSet unite(const CoordinateSet& left, const CoordinateSet& right);

struct PrunedSet {
  CoordinateSetPtr set;   // kept rows, in their old order
  Tensor kept;            // int32 [rows of set]: row in the old set
};
/// Keeps the rows where `keep` (u8 [N]) is not zero.
PrunedSet prune_set(const CoordinateSet& set, ConstTensorView keep);

/// The same sites in other rows: that of row r, where rows come in key order, is in row `row[r]`,
/// i32 [N], which names every row once. Takes no sort, and on a device does not wait: numbers that
/// are no rows raise where the stream is next waited for, and a row that is named twice is not
/// noticed.
CoordinateSetPtr reorder(const CoordinateSet& set, ConstTensorView row);

/// Rows [begin[b], begin[b + 1]) hold batch item b when rows come in key order; int64 [batch_size +
/// 1] of ranks otherwise (use `index().order`).
Tensor batch_ranges(const CoordinateSet& set);

}   // namespace pumice
