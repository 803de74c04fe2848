// Kernel maps by blocks: a block of outputs looks each neighbouring block up at most once, and only
// where one of its cells reaches it; then matching is ANDs and bit counts. A LiDAR scan at 5 cm
// has 2.9 voxels in a block, which reach 7 of its 26 neighbours.
#include "maps/cpu/block_match.hpp"

#include <algorithm>
#include <bit>
#include <optional>

#include "maps/cpu/block_finder.hpp"
#include "maps/cpu/reach_table.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kLeastChunk = 256;   // blocks
constexpr std::int64_t kMostTableEntries = std::int64_t{1} << 22;

using BlockVector = std::array<std::int64_t, kMaxDimension>;

template <int kDimension> class BlockMatcher {
 public:
  BlockMatcher(const CoordinateSet& in, const CoordinateSet& out, const ReachTables& tables)
      : in_(in.index()),
        out_(out.index()),
        in_batches_(in.batch_size()),
        tables_(tables),
        finder_(in.index()) {}

  /// Appends the pairs of output blocks [begin, end).
  void find(std::int64_t begin, std::int64_t end, PairSink& found) const {
    if (in_.blocks == 0) return;
    Surroundings around(*this);
    for (std::int64_t block = begin; block < end; ++block) {
      const ReachTable* table = look_around(block, around);
      if (table != nullptr) match(block, *table, around.neighbours.data(), found);
    }
  }

 private:
  struct Neighbour {
    std::uint64_t occupancy = 0;
    std::int32_t base_rank = 0;
  };
  /// What is known about the surroundings of one output block.
  struct Surroundings {
    explicit Surroundings(const BlockMatcher& matcher)
        : cursor(matcher.finder_),
          parts(matcher.tables_.most_steps()),
          needed((matcher.tables_.most_neighbours() + 63) / 64),
          neighbours(matcher.tables_.most_neighbours()) {}
    BlockFinder::Cursor cursor;
    std::vector<std::uint64_t> parts;    // of block keys, by step
    std::vector<std::uint64_t> needed;   // bits of neighbours
    std::vector<Neighbour> neighbours;   // those needed
  };
  static constexpr std::uint64_t kNoBlock = std::uint64_t{1} << 63;   // block keys have 57 bits

  /// Looks up all blocks that some cell of an output block reaches; null when there are none
  /// because the input has no such batch item.
  const ReachTable* look_around(std::int64_t block, Surroundings& around) const {
    const std::uint64_t key = out_.block_key[block];
    const std::int64_t batch = decode_batch(out_.layout, key << kBlockBits);
    if (batch >= in_batches_) return nullptr;
    const ReachTable& table = find_parts(key, around.parts);
    std::fill_n(around.needed.begin(), table.need_words, 0);
    for (std::uint64_t left = out_.occupancy[block]; left != 0; left &= left - 1) {
      const auto cell = static_cast<std::size_t>(std::countr_zero(left));
      for (std::size_t word = 0; word < table.need_words; ++word) {
        around.needed[word] |= table.needs[cell * table.need_words + word];
      }
    }
    std::uint64_t batch_part = 0;
    if (in_.layout.batch_bits > 0) {
      batch_part = static_cast<std::uint64_t>(batch) << (in_.layout.batch_shift - kBlockBits);
    }
    for (std::size_t word = 0; word < table.need_words; ++word) {
      const auto* displacements = table.neighbours.data() + 64 * word;
      Neighbour* neighbours = around.neighbours.data() + 64 * word;
      const std::uint64_t* parts = around.parts.data();
      for (std::uint64_t left = around.needed[word]; left != 0; left &= left - 1) {
        const int number = std::countr_zero(left);
        const std::uint32_t* steps = displacements[number].data();
        std::uint64_t wanted = batch_part;
        for (int axis = 0; axis < kDimension; ++axis)
          wanted |= parts[steps[axis]];
        if ((wanted & kNoBlock) != 0) {
          neighbours[number] = {};
          continue;
        }
        const auto [there, is_there] = around.cursor.find(wanted);
        neighbours[number] = {in_.occupancy[there] & is_there, in_.base_rank[there]};
      }
    }
    return &table;
  }

  /// The table of an output block, and what each axis and step adds to the keys of its neighbours.
  const ReachTable& find_parts(std::uint64_t key, std::vector<std::uint64_t>& parts) const {
    const KeyLayout& layout = in_.layout;
    BlockVector position{};
    BlockVector landing{};
    for (int axis = 0; axis < kDimension; ++axis) {
      position[static_cast<std::size_t>(axis)] =
          static_cast<std::int64_t>(extract_bits(key, out_.layout.mask[axis] >> kBlockBits));
    }
    const ReachTable& table = tables_.of(position, landing);
    std::size_t part = 0;
    for (int axis = 0; axis < kDimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const std::uint64_t mask = layout.mask[axis] >> kBlockBits;
      const int bits = layout.bits[axis] - block_axis_bits(kDimension, axis);
      for (const std::int64_t step : table.steps[at]) {
        const auto target = static_cast<std::uint64_t>(landing[at] + step);
        parts[part++] = target >> bits == 0 ? deposit_bits(target, mask) : kNoBlock;
      }
    }
    return table;
  }

  void match(std::int64_t block, const ReachTable& table, const Neighbour* neighbours,
             PairSink& found) const {
    // Pointers of their own, because for all the compiler knows the pairs written change the table.
    const ReachTable::Word* words = table.words.data();
    const ReachTable::Landing* reaches = table.reaches.data();
    const ReachTable::Want* all_wants = table.wants.data();
    std::int32_t out_rank = out_.base_rank[block];
    for (std::uint64_t left = out_.occupancy[block]; left != 0; left &= left - 1, ++out_rank) {
      const auto cell = static_cast<std::size_t>(std::countr_zero(left));
      FoundPair* next = found.reserve();
      const ReachTable::Word* last_word = words + table.begin[cell + 1];
      for (const auto* word = words + table.begin[cell]; word != last_word; ++word) {
        const ReachTable::Want* wants = all_wants + word->first_want;
        const ReachTable::Landing* last_reach = reaches + word->end_reach;
        std::uint64_t hits = 0;
        for (const auto* reach = reaches + word->first_reach; reach != last_reach; ++reach) {
          hits |= extract_bits(neighbours[reach->neighbour].occupancy, reach->wanted)
                  << reach->shift;
        }
        for (; hits != 0; hits &= hits - 1) {
          const ReachTable::Want want = wants[std::countr_zero(hits)];
          const Neighbour& neighbour = neighbours[want.place / kBlockCells];
          const std::uint64_t below =
              neighbour.occupancy & ((std::uint64_t{1} << want.place % kBlockCells) - 1);
          *next++ = {want.offset, neighbour.base_rank + std::popcount(below), out_rank};
        }
      }
      found.commit(next);
    }
  }

  const BlockIndexRef& in_;
  const BlockIndexRef& out_;
  std::int64_t in_batches_;
  const ReachTables& tables_;
  BlockFinder finder_;
};

template <int kDimension>
KernelPairs match(const CoordinateSet& in, const CoordinateSet& out, const OffsetAxes& offsets,
                  const ReachTables& tables, std::optional<std::size_t> identity_offset) {
  const BlockMatcher<kDimension> matcher(in, out, tables);
  const std::int64_t blocks = out.index().blocks;
  const auto first_rank = [&](std::int64_t block) {
    return block < blocks ? std::int64_t{out.index().base_rank[block]} : out.size();
  };
  const IdentityPairs<decltype(first_rank)> identity{identity_offset.value_or(0), first_rank};
  return collect_pairs(in, out, offsets.offsets(), blocks,
                       pair_grain(blocks, offsets.offsets(), kLeastChunk),
                       identity_offset ? &identity : nullptr,
                       [&](std::int64_t begin, std::int64_t end, PairSink& found) {
                         matcher.find(begin, end, found);
                       });
}

}   // namespace

bool can_match_blocks(const KernelWindow& window) {
  std::int64_t entries = window.volume() * kBlockCells;
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    if (entries > kMostTableEntries) return false;
    entries *= window.stride[at];
  }
  return entries <= kMostTableEntries;
}

KernelPairs match_blocks(const CoordinateSet& in, const CoordinateSet& out,
                         const KernelWindow& window, Reach reach) {
  const OffsetAxes offsets(window, reach);
  // Nobody need look for the pairs of a site with itself: a quarter of all in a scan.
  std::optional<std::size_t> identity;
  if (&in == &out && window.symmetric()) identity = offsets.offsets() / 2;
  const ReachTables tables(offsets, reach, window, in.layout(), out.layout(), identity);
  switch (in.dimension()) {
    case 1: return match<1>(in, out, offsets, tables, identity);
    case 2: return match<2>(in, out, offsets, tables, identity);
    case 3: return match<3>(in, out, offsets, tables, identity);
    default: return match<4>(in, out, offsets, tables, identity);
  }
}

}   // namespace pumice
