// What each of the 64 cells of an output block reaches. Where a cell's inputs lie relative to its
// block is the same for all blocks, so it is worked out once for each map:
//
//      cell c  ->  (neighbouring block, 64-bit mask of the cells wanted there), ...
//
// and matching a cell is then an AND with the neighbour's occupancy for each of them: with a
// 3x3x3 kernel 3.4 on average, where asking for each offset would take 27 lookups.
#pragma once

#include "maps/cpu/offset_axes.hpp"

namespace pumice {

/// Reach of all cells of the blocks of one phase. Through a division (Direction::in_to_out) blocks
/// differ in what they reach by their number modulo the stride; otherwise there is one phase.
struct ReachTable {
  struct Reach {
    std::uint64_t wanted;      // cells of the neighbour, Morton numbers
    std::uint32_t neighbour;   // index below
    std::uint32_t first;       // in `offset`: one for each wanted cell, ascending
  };
  std::array<std::uint32_t, kBlockCells + 1> begin{};   // by output cell: its part of `reach`
  std::vector<Reach> reach;
  std::vector<std::uint32_t> offset;   // kernel offset that leads to a wanted cell

  /// Neighbours as indices of the steps of each axis, in blocks from where the output block lands.
  std::vector<std::array<std::uint32_t, kMaxDimension>> neighbours;
  std::array<std::vector<std::int64_t>, kMaxDimension> steps;
};

class ReachTables {
 public:
  ReachTables(const OffsetAxes& offsets, Direction direction, const KernelWindow& window,
              const KeyLayout& in, const KeyLayout& out);

  /// The table of the output block at `block` (block coordinates), and where it lands.
  const ReachTable& of(const std::array<std::int64_t, kMaxDimension>& block,
                       std::array<std::int64_t, kMaxDimension>& landing) const;
  /// Sizes that scratch memory for any of the tables needs.
  std::size_t most_neighbours() const { return most_neighbours_; }

 private:
  Direction direction_;
  int dimension_;
  std::array<std::int64_t, kMaxDimension> stride_{};
  std::vector<ReachTable> phases_;
  std::size_t most_neighbours_ = 0;
};

}  // namespace pumice
