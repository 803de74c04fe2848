// Between sparse rows and dense grids.
#pragma once

#include <cstdint>
#include <optional>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/results.hpp>

namespace pumice {

/// A box of cells: [low, low + shape) on each of the set's axes.
struct DenseGrid {
  Axes low{0, 0, 0, 0};
  Axes shape{0, 0, 0, 0};
};

/// The grid of the set's spatial shape where it has one, else the smallest box around its sites
/// (empty for an empty set); for a set on a device, the box that its sites are known to keep.
DenseGrid grid_of(const CoordinateSet& set);

struct DenseOptions {
  std::optional<DenseGrid> grid{};   // absent: `grid_of` the set
  bool crop = false;                 // leave out rows outside the grid instead of refusing them
};

/// features [N, C] -> [batch_size, C, shape…], 0 where no site is. UserError naming the row for a
/// site outside the grid unless `crop`; on a device such rows are left out, and the next call that
/// waits for the stream raises the error, with how many they are.
Tensor to_dense(ConstTensorView features, const CoordinateSet& set,
                const DenseOptions& options = {}, const Place& place = {});
/// The gradient: what each site finds in grad_dense, [N, C]; 0 for rows that were cropped. Also
/// how a dense map is sampled at given sites.
Tensor to_dense_gradient(ConstTensorView grad_dense, const CoordinateSet& set,
                         const DenseOptions& options = {}, const Place& place = {});

/// As `to_dense`, with the extent of `axis` folded into the channels, channel-major: [batch_size,
/// C · shape[axis], other axes in order]. For a grid of x, y, z and axis 2: [B, C · Z, X, Y], what
/// the heads of detectors take.
Tensor to_bev(ConstTensorView features, const CoordinateSet& set, int axis,
              const DenseOptions& options = {}, const Place& place = {});
Tensor to_bev_gradient(ConstTensorView grad_bev, const CoordinateSet& set, int axis,
                       const DenseOptions& options = {}, const Place& place = {});

struct SparseRows {
  CoordinateSetPtr set;
  Tensor features;   // [N, C]
  DenseGrid grid;    // of the dense array it came from
};

struct FromDenseOptions {
  Axes low{0, 0, 0, 0};      // coordinate of the first cell
  Axes stride{1, 1, 1, 1};   // of the new set
  ConstTensorView mask{};    // u8 [B, shape…]: not zero where a site is; undefined: where any
                             // channel is not 0 (a NaN is not 0)
};

/// dense: [B, C, shape…], 1 to 4 spatial axes -> the sites that are there, in the order of the
/// array (batch, then axes, the last fastest), with batch_size = B. On a device this waits for how
/// many there are, which decides the shape of the result.
SparseRows from_dense(ConstTensorView dense, const FromDenseOptions& options = {},
                      const Place& place = {});
/// Gradient of the dense array, [B, C, shape…], 0 where no site is.
Tensor from_dense_gradient(ConstTensorView grad_features, const CoordinateSet& set,
                           const DenseGrid& grid, const Place& place = {});

}   // namespace pumice
