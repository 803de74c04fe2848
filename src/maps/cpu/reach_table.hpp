// What each of the 64 cells of an output block reaches. Where a cell's inputs lie relative to its
// block is the same for all blocks, so it is worked out once for each map:
//
//      cell c  ->  (neighbouring block, 64-bit mask of the cells wanted there), ...
//
// The occupied ones among the wanted cells are gathered from each neighbour's occupancy into one
// word, whose set bits are the pairs. With a 3x3x3 kernel a cell looks at 3.4 blocks on average,
// where asking for each offset would take 27 look-ups.
#pragma once

#include <optional>

#include "maps/cpu/offset_axes.hpp"

namespace pumice {

/// Reach of all cells of the blocks of one phase. Through a division (Reach::in_to_out) blocks
/// differ in what they reach by their number modulo the stride; otherwise there is one phase.
struct ReachTable {
  /// The wanted cells of a block, and where their occupancy goes in the word that gathers it.
  struct Landing {
    std::uint64_t wanted;      // Morton numbers
    std::uint32_t neighbour;   // index below
    std::int32_t shift;
  };
  /// What a bit of a gathered word stands for.
  struct Want {
    std::uint32_t offset;   // of the kernel
    std::uint32_t place;    // neighbour * 64 + cell there
  };
  /// As many reaches of one cell as fill a word; kernels of up to 64 offsets need one a cell.
  struct Word {
    std::uint32_t first_reach;
    std::uint32_t end_reach;
    std::uint32_t first_want;   // of bit 0
  };
  std::array<std::uint32_t, kBlockCells + 1> begin{};   // by output cell: its part of `words`
  std::vector<Word> words;
  std::vector<Landing> reaches;
  std::vector<Want> wants;

  /// Displacements, in blocks from where the output block lands, that any cell needs: per axis the
  /// index of a step, counted through all axes.
  std::vector<std::array<std::uint32_t, kMaxDimension>> neighbours;
  std::array<std::vector<std::int64_t>, kMaxDimension> steps;
  /// Which neighbours a cell needs, as bits: `need_words` words a cell.
  std::vector<std::uint64_t> needs;
  std::size_t need_words = 0;
};

class ReachTables {
 public:
  /// Of all offsets but the one `left_out`.
  ReachTables(const OffsetAxes& offsets, Reach reach, const KernelWindow& window,
              const KeyLayout& in, const KeyLayout& out, std::optional<std::size_t> left_out);

  /// The table of the output block at `block` (block coordinates), and where it lands.
  const ReachTable& of(const std::array<std::int64_t, kMaxDimension>& block,
                       std::array<std::int64_t, kMaxDimension>& landing) const {
    if (reach_ == Reach::out_to_in) {
      for (std::size_t at = 0; at < kMaxDimension; ++at)
        landing[at] = block[at] * stride_[at];
      return phases_.front();
    }
    std::size_t phase = 0;
    for (std::size_t at = kMaxDimension; at-- > 0;) {
      landing[at] = block[at] / stride_[at];   // block coordinates are never negative
      phase = phase * static_cast<std::size_t>(stride_[at]) +
              static_cast<std::size_t>(block[at] % stride_[at]);
    }
    return phases_[phase];
  }
  /// Sizes that scratch memory for any of the tables needs.
  std::size_t most_neighbours() const { return most_neighbours_; }
  std::size_t most_steps() const { return most_steps_; }

 private:
  Reach reach_;
  std::array<std::int64_t, kMaxDimension> stride_{1, 1, 1, 1};
  std::vector<ReachTable> phases_;   // axis 0 fastest
  std::size_t most_neighbours_ = 0;
  std::size_t most_steps_ = 0;
};

}   // namespace pumice
