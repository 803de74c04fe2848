// Kernel maps by blocks: a block of outputs looks each neighbouring block up at most once, and only
// where one of its cells reaches it; then matching is ANDs and bit counts. A LiDAR scan at 5 cm
// has 2.9 voxels in a block, which reach 7 of its 26 neighbours.
#include "maps/cpu/block_match.hpp"

#include <bit>

#include "maps/cpu/reach_table.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kLeastChunk = 256;   // blocks
constexpr std::int64_t kMostTableEntries = std::int64_t{1} << 22;

using BlockVector = std::array<std::int64_t, kMaxDimension>;

class BlockMatcher {
 public:
  BlockMatcher(const CoordinateSet& in, const CoordinateSet& out, const ReachTables& tables)
      : in_(in.index()), out_(out.index()), in_batches_(in.batch_size()), tables_(tables) {}

  /// Appends the pairs of output blocks [begin, end).
  void find(std::int64_t begin, std::int64_t end, std::vector<FoundPair>& found) const {
    Surroundings around;
    around.neighbours.resize(tables_.most_neighbours());
    for (std::int64_t block = begin; block < end; ++block) {
      if (!enter(block, around)) continue;
      const ReachTable& table = *around.table;
      std::int32_t out_rank = out_.base_rank[block];
      for (std::uint64_t left = out_.occupancy[block]; left != 0; left &= left - 1, ++out_rank) {
        const auto cell = static_cast<std::size_t>(std::countr_zero(left));
        for (std::uint32_t i = table.begin[cell]; i < table.begin[cell + 1]; ++i) {
          const ReachTable::Reach& reach = table.reach[i];
          const Neighbour& neighbour = visit(reach.neighbour, block, around);
          for (std::uint64_t hits = neighbour.occupancy & reach.wanted; hits != 0;
               hits &= hits - 1) {
            const std::uint64_t below = (hits & (~hits + 1)) - 1;
            const auto wanted_below =
                static_cast<std::uint32_t>(std::popcount(reach.wanted & below));
            found.push_back({table.offset[reach.first + wanted_below],
                             neighbour.base_rank + std::popcount(neighbour.occupancy & below),
                             out_rank});
          }
        }
      }
    }
  }

 private:
  struct Neighbour {
    std::uint64_t occupancy = 0;
    std::int32_t base_rank = 0;
    std::int64_t seen_by = -1;   // the output block that looked it up last
  };
  /// What is known about the surroundings of one output block.
  struct Surroundings {
    const ReachTable* table = nullptr;
    std::uint64_t batch_part = 0;
    BlockVector landing{};
    std::vector<Neighbour> neighbours;
  };

  /// Turns to an output block; false when the input has no such batch item.
  bool enter(std::int64_t block, Surroundings& around) const {
    const std::uint64_t key = out_.block_key[block];
    const std::int64_t batch = decode_batch(out_.layout, key << kBlockBits);
    if (batch >= in_batches_) return false;
    BlockVector position{};
    for (int axis = 0; axis < out_.layout.dimension; ++axis) {
      position[static_cast<std::size_t>(axis)] = static_cast<std::int64_t>(
          extract_bits(key, out_.layout.mask[axis] >> kBlockBits));
    }
    around.table = &tables_.of(position, around.landing);
    around.batch_part = in_.layout.batch_bits == 0
                            ? 0
                            : static_cast<std::uint64_t>(batch)
                                  << (in_.layout.batch_shift - kBlockBits);
    return true;
  }

  const Neighbour& visit(std::uint32_t number, std::int64_t block, Surroundings& around) const {
    Neighbour& neighbour = around.neighbours[number];
    if (neighbour.seen_by != block) {
      neighbour.seen_by = block;
      const std::int64_t found = look_up(number, around);
      neighbour.occupancy = found < 0 ? 0 : in_.occupancy[found];
      neighbour.base_rank = found < 0 ? 0 : in_.base_rank[found];
    }
    return neighbour;
  }

  std::int64_t look_up(std::uint32_t number, const Surroundings& around) const {
    const KeyLayout& layout = in_.layout;
    const auto& steps = around.table->neighbours[number];
    std::uint64_t key = around.batch_part;
    for (int axis = 0; axis < layout.dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const auto target =
          static_cast<std::uint64_t>(around.landing[at] + around.table->steps[at][steps[at]]);
      const int bits = layout.bits[axis] - block_axis_bits(layout.dimension, axis);
      if (target >> bits != 0) return -1;
      key |= deposit_bits(target, layout.mask[axis] >> kBlockBits);
    }
    return in_.find_block(key);
  }

  const BlockIndexRef& in_;
  const BlockIndexRef& out_;
  std::int64_t in_batches_;
  const ReachTables& tables_;
};

}  // namespace

bool can_match_blocks(const KernelWindow& window) {
  std::int64_t entries = window.volume() * kBlockCells;
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    if (entries > kMostTableEntries) return false;
    entries *= window.stride[at];
  }
  return entries <= kMostTableEntries;
}

PairLists match_blocks(const CoordinateSet& in, const CoordinateSet& out,
                       const KernelWindow& window, Direction direction) {
  const OffsetAxes offsets(window, direction);
  const ReachTables tables(offsets, direction, window, in.layout(), out.layout());
  const BlockMatcher matcher(in, out, tables);
  const std::int64_t blocks = out.index().blocks;
  return collect_pairs(in, out, offsets.offsets(), blocks,
                       pair_grain(blocks, offsets.offsets(), kLeastChunk),
                       [&](std::int64_t begin, std::int64_t end, std::vector<FoundPair>& found) {
                         matcher.find(begin, end, found);
                       });
}

}  // namespace pumice
