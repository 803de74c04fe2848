// Cells of points, then their distinct ones.
#include "coords/cpu/voxel_sites.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>

#include <pumice/coords/unique.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunk = 4096;   // points
constexpr float kCellLimit = 0x1p31f;   // cells lie in [-2^31, 2^31)
constexpr std::int32_t kLeftOut = -1;   // instead of a batch item

enum class Fate { kept, left_out, without_cell };

class Cells {
 public:
  Cells(ConstTensorView points, ConstTensorView batch, const VoxelSiteOptions& options)
      : positions_(points.data<float>()),
        stride_(points.extent(1)),
        batch_(batch.defined() ? batch.data<std::int32_t>() : nullptr),
        options_(options) {}

  /// Writes the batch item and the cell of a point where it is kept.
  Fate find(std::int64_t point, std::int32_t* cell) const {
    const float* const at = positions_ + point * stride_;
    const std::int32_t item = batch_ == nullptr ? 0 : batch_[point];
    if (item < 0 || item >= options_.batch_size) return Fate::without_cell;
    bool finite = true;
    bool left_out = false;
    bool fits = true;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      finite &= std::isfinite(at[axis]);
      left_out |= options_.range &&
                  !(at[axis] >= (*options_.range)[axis] && at[axis] < (*options_.range)[axis + 3]);
      const float exact = cell_along(axis, at[axis]);
      if (options_.spatial_shape)
        left_out |= !(exact >= 0.0f && exact < static_cast<float>((*options_.spatial_shape)[axis]));
      const bool fit = exact >= -kCellLimit && exact < kCellLimit;
      fits &= fit;
      cell[axis + 1] = fit ? static_cast<std::int32_t>(exact) : 0;
    }
    cell[0] = finite && !left_out && fits ? item : kLeftOut;
    if (!finite) return Fate::without_cell;
    if (left_out) return Fate::left_out;
    return fits ? Fate::kept : Fate::without_cell;
  }

  [[noreturn]] void refuse(std::int64_t point) const {
    const float* const at = positions_ + point * stride_;
    PUMICE_EXPECTS(batch_ == nullptr || (batch_[point] >= 0 && batch_[point] < options_.batch_size),
                   "point ", point, " is of batch item ", batch_[point], " in a batch of ",
                   options_.batch_size);
    throw NoCellError(
        detail::concatenate("point ", point, " is at (", at[0], ", ", at[1], ", ", at[2],
                            "), which has no cell in 32 bits; drop such points before voxelising, "
                            "or give a range"));
  }

 private:
  float cell_along(std::size_t axis, float position) const {
    const float origin = options_.range ? (*options_.range)[axis] : 0.0f;
    return std::floor((position - origin) / options_.size[axis]);
  }

  const float* positions_;
  std::int64_t stride_;
  const std::int32_t* batch_;
  const VoxelSiteOptions& options_;
};

/// The batch item and cell of every point, i32 [P, 4]; kLeftOut for an item where it is left out.
Tensor cells_of(const Cells& cells, std::int64_t points) {
  Tensor found({points, 4}, DType::i32);
  auto* const to = found.data<std::int32_t>();
  std::atomic<bool> misfits = false;
  parallel_for(points, kChunk, [&](std::int64_t begin, std::int64_t end) {
    bool any = false;
    for (std::int64_t point = begin; point < end; ++point)
      any |= cells.find(point, to + 4 * point) == Fate::without_cell;
    if (any) misfits.store(true, std::memory_order_relaxed);
  });
  // Serial, so that the point named does not depend on which chunk ran first.
  for (std::int64_t point = 0; misfits && point < points; ++point) {
    std::int32_t cell[4];
    if (cells.find(point, cell) == Fate::without_cell) cells.refuse(point);
  }
  return found;
}

/// The rows of `cells` that are kept, one after the other.
Tensor kept_cells(const Tensor& cells, std::int64_t kept) {
  if (kept == cells.rows()) return cells;
  Tensor result({kept, 4}, DType::i32);
  const auto* from = cells.data<std::int32_t>();
  auto* to = result.data<std::int32_t>();
  for (std::int64_t point = 0; point < cells.rows(); ++point, from += 4) {
    if (*from != kLeftOut) to = std::copy_n(from, 4, to);
  }
  return result;
}

}   // namespace

VoxelSites voxel_sites(ConstTensorView points, ConstTensorView batch,
                       const VoxelSiteOptions& options, const Place& place) {
  const std::int64_t count = points.rows();
  const Tensor cells = cells_of(Cells(points, batch, options), count);
  const auto* const cell = cells.data<std::int32_t>();
  std::int64_t kept = 0;
  for (std::int64_t point = 0; point < count; ++point)
    kept += cell[4 * point] != kLeftOut ? 1 : 0;
  UniqueCoordinates found = unique_coordinates(
      kept_cells(cells, kept),
      {.spatial_shape = options.spatial_shape, .batch_size = options.batch_size});
  if (kept == count) return {std::move(found.set), place.put(std::move(found.row_of), "row_of")};
  Tensor row_of = place.make({count}, DType::i32, points.stream(), "row_of");
  auto* const to = row_of.data<std::int32_t>();
  const auto* from = found.row_of.data<std::int32_t>();
  for (std::int64_t point = 0; point < count; ++point)
    to[point] = cell[4 * point] == kLeftOut ? -1 : *from++;
  return {std::move(found.set), std::move(row_of)};
}

std::array<float, 6> position_bounds(ConstTensorView points) {
  std::array<float, 6> bounds{};
  const auto* at = points.data<float>();
  for (std::int64_t point = 0; point < points.rows(); ++point, at += points.extent(1)) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float value = at[axis];
      const bool first = point == 0 || std::isnan(value);
      bounds[axis] = first ? value : std::min(bounds[axis], value);
      bounds[axis + 3] = first ? value : std::max(bounds[axis + 3], value);
    }
  }
  return bounds;
}

}   // namespace pumice::cpu
