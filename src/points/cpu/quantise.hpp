// Positions in metres to integer cells, in float32 arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::detail {

/// Cells of the points of a batch, and the box around those that are kept.
struct CellGrid {
  Buffer<std::int32_t> cell;     // [P, 3]
  Buffer<std::uint8_t> kept;     // [P], 0 for a point out of range; empty when all are kept
  Buffer<std::int64_t> before;   // [P / kQuantiseChunk rounded up + 1]: kept points before a chunk
  std::int64_t low[3] = {0, 0, 0};
  std::int64_t high[3] = {0, 0, 0};

  std::int64_t points() const { return cell.size() / 3; }
  std::int64_t kept_points() const { return before[before.size() - 1]; }
};

inline constexpr std::int64_t kQuantiseChunk = 4096;   // points: 48 KiB of positions, as of cells

/// Quantises all clouds one after the other; UserError names the first point that has no cell.
CellGrid quantise(std::span<const FeaturedCloud> clouds, const VoxelOptions& options);

}  // namespace pumice::detail
