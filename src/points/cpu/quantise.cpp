// floor((p − origin) / size), eight points at a time, and the crop to a range.
#include "points/cpu/quantise.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include <pumice/core/parallel.hpp>

namespace pumice::detail {
namespace {

constexpr std::int64_t kGroup = kQuantiseLanes / 3;   // points a step
constexpr std::int64_t kLanes = kQuantiseLanes;
constexpr float kCellLimit = 0x1p31f;   // cells lie in [-2^31, 2^31)

struct Chunk {
  std::int64_t kept = 0;
  bool misfits = false;   // some position has no cell
  std::int32_t low[3] = {0, 0, 0};
  std::int32_t high[3] = {0, 0, 0};
};

bool fits(float cell) {
  return cell >= -kCellLimit && cell < kCellLimit;
}   // false for NaN

/// Writes the cells of kLanes numbers; returns a bit that is set where one has none. Integers do
/// what std::floor and comparisons of floats would: those may trap, so compilers leave them scalar,
/// which takes four times as long.
std::uint32_t quantise_lanes(const float* position, std::int32_t* cell,
                             const QuantiseLanes& lanes) {
  std::array<float, kLanes> exact;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    exact[lane] = (position[lane] - lanes.origin[lane]) / lanes.size[lane];
  }
  auto bits = std::bit_cast<std::array<std::uint32_t, kLanes>>(exact);
  std::array<std::uint32_t, kLanes> misfit;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {   // as `fits` has it
    const bool fit = ((bits[lane] & 0x7fffffffu) < std::bit_cast<std::uint32_t>(kCellLimit)) |
                     (bits[lane] == std::bit_cast<std::uint32_t>(-kCellLimit));
    misfit[lane] = fit ? 0u : ~0u;
    bits[lane] &= ~misfit[lane];
  }
  exact = std::bit_cast<std::array<float, kLanes>>(bits);
  std::array<float, kLanes> above;   // how far rounding towards zero went up
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    cell[lane] = static_cast<std::int32_t>(exact[lane]);
    above[lane] = static_cast<float>(cell[lane]) - exact[lane];
  }
  const auto went_up = std::bit_cast<std::array<std::int32_t, kLanes>>(above);
  std::uint32_t misfits = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    cell[lane] -= went_up[lane] > 0 ? 1 : 0;
    misfits |= misfit[lane];
  }
  return misfits;
}

/// Writes the cells of `points` points; false when some point has none.
bool quantise_points(const float* position, std::int32_t* cell, std::int64_t points,
                     const QuantiseLanes& lanes) {
  std::uint32_t misfits = 0;
  const std::int64_t whole = points / kGroup * kLanes;
  for (std::int64_t base = 0; base < whole; base += kLanes) {
    misfits |= quantise_lanes(position + base, cell + base, lanes);
  }
  for (std::int64_t i = whole; i < 3 * points; ++i) {
    const auto axis = static_cast<std::size_t>(i % 3);
    const float floored = std::floor((position[i] - lanes.origin[axis]) / lanes.size[axis]);
    misfits |= fits(floored) ? 0u : 1u;
    cell[i] = fits(floored) ? static_cast<std::int32_t>(floored) : 0;
  }
  return misfits == 0;
}

bool in_range(const float* position, const std::array<float, 6>& range) {
  bool inside = true;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    inside &= position[axis] >= range[axis] && position[axis] < range[axis + 3];
  }
  return inside;
}

/// Throws for the first point of a cloud that is not finite, or is kept and has no cell. Serial, so
/// that the point named does not depend on which chunk ran first.
void refuse_misfits(const Tensor& positions, std::size_t cloud, const VoxelOptions& options) {
  const float* p = positions.data<float>();
  for (std::int64_t point = 0; point < positions.rows(); ++point, p += 3) {
    PUMICE_EXPECTS(std::isfinite(p[0]) && std::isfinite(p[1]) && std::isfinite(p[2]), "point ",
                   point, " of cloud ", cloud, " is at (", p[0], ", ", p[1], ", ", p[2],
                   "), which is not finite; drop such points before voxelising");
    if (options.range && !in_range(p, *options.range)) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float origin = options.range ? (*options.range)[axis] : 0.0f;
      const float floored = std::floor((p[axis] - origin) / options.size[axis]);
      PUMICE_EXPECTS(fits(floored), "point ", point, " of cloud ", cloud, " has ", "xyz"[axis],
                     " = ", p[axis], " m, which is cell ", floored, " at ", options.size[axis],
                     " m a voxel and does not fit 32 bits; use larger voxels or give a range");
    }
  }
}

/// The box around the cells of kept points, and how many there are.
Chunk bounds_of(const std::int32_t* cell, const std::uint8_t* kept, std::int64_t points) {
  std::array<std::int32_t, kLanes> low;
  std::array<std::int32_t, kLanes> high;
  low.fill(std::numeric_limits<std::int32_t>::max());
  high.fill(std::numeric_limits<std::int32_t>::min());
  Chunk chunk;
  std::int64_t point = 0;
  if (kept == nullptr) {
    for (; point + kGroup <= points; point += kGroup) {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        const std::int32_t at = cell[3 * point + static_cast<std::int64_t>(lane)];
        low[lane] = std::min(low[lane], at);
        high[lane] = std::max(high[lane], at);
      }
    }
    chunk.kept = point;
  }
  for (; point < points; ++point) {
    if (kept != nullptr && kept[point] == 0) continue;
    ++chunk.kept;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const std::int32_t at = cell[3 * point + static_cast<std::int64_t>(axis)];
      low[axis] = std::min(low[axis], at);
      high[axis] = std::max(high[axis], at);
    }
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    chunk.low[axis] = low[axis];
    chunk.high[axis] = high[axis];
    for (std::size_t lane = axis; lane < kLanes; lane += 3) {
      chunk.low[axis] = std::min(chunk.low[axis], low[lane]);
      chunk.high[axis] = std::max(chunk.high[axis], high[lane]);
    }
  }
  return chunk;
}

void take_in(Chunk& all, const Chunk& part) {
  for (std::size_t axis = 0; part.kept > 0 && axis < 3; ++axis) {
    all.low[axis] = all.kept > 0 ? std::min(all.low[axis], part.low[axis]) : part.low[axis];
    all.high[axis] = all.kept > 0 ? std::max(all.high[axis], part.high[axis]) : part.high[axis];
  }
  all.kept += part.kept;
  all.misfits |= part.misfits;
}

}   // namespace

Quantiser::Quantiser(std::span<const FeaturedCloud> clouds, const VoxelOptions& options)
    : clouds_(clouds), options_(options) {
  starts_.push_back(0);
  for (const FeaturedCloud& item : clouds)
    starts_.push_back(starts_.back() + item.cloud->size());
  for (std::size_t lane = 0; lane < lanes_.origin.size(); ++lane) {
    lanes_.origin[lane] = options.range ? (*options.range)[lane % 3] : 0.0f;
    lanes_.size[lane] = options.size[lane % 3];
  }
}

bool Quantiser::quantise(std::int64_t begin, std::int64_t end, Piece& piece) const {
  bool all_fit = true;
  for (std::size_t c = 0; c < clouds_.size(); ++c) {
    const std::int64_t from = std::max(begin, starts_[c]);
    const std::int64_t to = std::min(end, starts_[c + 1]);
    if (from >= to) continue;
    const float* position = clouds_[c].cloud->positions.data<float>() + 3 * (from - starts_[c]);
    all_fit &= quantise_points(position, piece.cell.data() + 3 * (from - begin), to - from, lanes_);
    if (!options_.range) continue;
    std::uint8_t* kept = piece.kept.data() + (from - begin);
    for (std::int64_t point = 0; point < to - from; ++point) {
      kept[point] = in_range(position + 3 * point, *options_.range) ? 1 : 0;
    }
  }
  return all_fit;
}

CellBox Quantiser::find_box() const {
  const std::int64_t count = (points() + kQuantiseChunk - 1) / kQuantiseChunk;
  std::vector<Chunk> chunks(static_cast<std::size_t>(count));
  // A chunk may span clouds, so that chunk numbers follow from the point alone.
  parallel_for(points(), kQuantiseChunk, [&](std::int64_t begin, std::int64_t end) {
    Piece piece;
    Chunk& chunk = chunks[static_cast<std::size_t>(begin / kQuantiseChunk)];
    for (std::int64_t first = begin; first < end; first += kPiecePoints) {
      const std::int64_t last = std::min(first + kPiecePoints, end);
      const bool all_fit = quantise(first, last, piece);
      Chunk part =
          bounds_of(piece.cell.data(), options_.range ? piece.kept.data() : nullptr, last - first);
      part.misfits = !all_fit;
      take_in(chunk, part);
    }
  });

  CellBox box;
  box.before = Buffer<std::int64_t>(count + 1);
  Chunk all;
  for (std::int64_t i = 0; i < count; ++i) {
    box.before[i] = all.kept;
    take_in(all, chunks[static_cast<std::size_t>(i)]);
  }
  box.before[count] = all.kept;
  if (all.misfits) {
    for (std::size_t c = 0; c < clouds_.size(); ++c) {
      refuse_misfits(clouds_[c].cloud->positions, c, options_);
    }
  }
  std::copy_n(all.low, 3, box.low);
  std::copy_n(all.high, 3, box.high);
  return box;
}

}   // namespace pumice::detail
