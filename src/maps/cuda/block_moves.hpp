// Where the offsets of a window lead from the cells of a block.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include <pumice/shared/key_layout.h>
#include <pumice/maps/kernel_window.hpp>

namespace pumice::cuda {

/// What matching by blocks reads; see WindowRef.
struct BlockMoves {
  std::vector<std::uint16_t> cell_move;   // [words, 64, 32]
  std::vector<std::uint64_t> needed_by;   // [kMostNeighbours]
  std::array<std::int8_t, kMaxDimension> first_step{};
};

/// From the cells of a block to scale · cell + sign · shift, where three blocks an axis suffice;
/// `shifts` are [volume, dimension].
std::optional<BlockMoves> make_block_moves(int dimension, const std::vector<std::int32_t>& shifts,
                                           int scale, int sign);

}   // namespace pumice::cuda
