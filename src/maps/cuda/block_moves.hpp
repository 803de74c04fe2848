// Where the offsets of a window lead from the cells of a block.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/maps/kernel_window.hpp>

namespace pumice::cuda {

/// What `match_blocks` reads; see WindowRef.
struct BlockMoves {
  std::vector<std::uint16_t> cell_move;   // [words, 64, 32]
  std::vector<std::uint64_t> needed_by;   // [kMostNeighbours]
};

/// `shifts` are [volume, dimension], each at most as long as a block; `sign` turns them around.
BlockMoves make_block_moves(int dimension, const std::vector<std::int32_t>& shifts, int sign);

}   // namespace pumice::cuda
