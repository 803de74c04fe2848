// The tables of a window for blocks of 64 cells.
#include "maps/cuda/block_moves.hpp"

#include <algorithm>
#include <array>

#include <pumice/maps/cell_relation.h>
#include <pumice/shared/floor_division.h>
#include <pumice/shared/key_layout.h>

namespace pumice::cuda {
namespace {

constexpr std::size_t kLanes = 32;

/// Bits of a local cell that belong to an axis: every layout has these six lowest, for every axis
/// keeps at least its block bits.
std::array<std::uint64_t, kMaxDimension> local_masks(int dimension) {
  std::array<std::uint64_t, kMaxDimension> masks{};
  int position = 0;
  for (int round = 0; position < kBlockBits; ++round) {
    for (int axis = 0; axis < dimension && position < kBlockBits; ++axis) {
      if (round < block_axis_bits(dimension, axis))
        masks[static_cast<std::size_t>(axis)] |= std::uint64_t{1} << position++;
    }
  }
  return masks;
}

/// Along each axis the first of the three blocks; nothing where three do not reach.
std::optional<std::array<std::int8_t, kMaxDimension>> first_steps(
    int dimension, const std::vector<std::int32_t>& shifts, int scale, int sign) {
  const auto axes = static_cast<std::size_t>(dimension);
  std::array<std::int8_t, kMaxDimension> first{};
  for (std::size_t axis = 0; axis < axes; ++axis) {
    const std::int64_t extent = std::int64_t{1}
                                << block_axis_bits(dimension, static_cast<int>(axis));
    std::int64_t low = 0;
    std::int64_t high = 0;
    for (std::size_t at = axis; at < shifts.size(); at += axes) {
      low = std::min(low, std::int64_t{sign} * shifts[at]);
      high = std::max(high, std::int64_t{sign} * shifts[at]);
    }
    const std::int64_t from = floor_divide(low, extent);
    const std::int64_t to = floor_divide(scale * (extent - 1) + high, extent);
    if (from < -2 || to - from > 2) return std::nullopt;
    first[axis] = static_cast<std::int8_t>(from);
  }
  return first;
}

}   // namespace

std::optional<BlockMoves> make_block_moves(int dimension, const std::vector<std::int32_t>& shifts,
                                           int scale, int sign) {
  const auto axes = static_cast<std::size_t>(dimension);
  const auto first = first_steps(dimension, shifts, scale, sign);
  if (!first) return std::nullopt;
  const std::size_t volume = shifts.size() / axes;
  const auto masks = local_masks(dimension);
  BlockMoves moves;
  moves.first_step = *first;
  moves.cell_move.assign((volume + kLanes - 1) / kLanes * kBlockCells * kLanes,
                         kNowhere * kBlockCells);
  moves.needed_by.assign(kMostNeighbours, 0);
  for (std::size_t k = 0; k < volume; ++k) {
    for (std::size_t cell = 0; cell < kBlockCells; ++cell) {
      std::size_t neighbour = 0;
      std::uint64_t there = 0;
      std::size_t weight = 1;
      for (std::size_t axis = 0; axis < axes; ++axis, weight *= 3) {
        const int extent = 1 << block_axis_bits(dimension, static_cast<int>(axis));
        const int local = static_cast<int>(extract_bits(cell, masks[axis]));
        const int moved =
            scale * local + sign * shifts[k * axes + axis] - moves.first_step[axis] * extent;
        neighbour += weight * static_cast<std::size_t>(moved / extent);
        there |= deposit_bits(static_cast<std::uint64_t>(moved % extent), masks[axis]);
      }
      moves.needed_by[neighbour] |= std::uint64_t{1} << cell;
      moves.cell_move[(k / kLanes * kBlockCells + cell) * kLanes + k % kLanes] =
          static_cast<std::uint16_t>(neighbour * kBlockCells + there);
    }
  }
  return moves;
}

}   // namespace pumice::cuda
