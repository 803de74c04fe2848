// One lookup for each output row and offset, remembering the last block of every offset.
#include "maps/cpu/row_search.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kLeastChunk = 512;

class RowSearch {
 public:
  RowSearch(const CoordinateSet& in, const CoordinateSet& out, const KernelWindow& window,
            Reach reach)
      : in_(in), out_(out), axes_(window, reach), ranges_(ranges_of(in.layout())) {}

  std::size_t offsets() const { return axes_.offsets(); }

  /// Appends all pairs of output ranks [begin, end), by rank and then by offset.
  void find(std::int64_t begin, std::int64_t end, PairSink& found) const {
    const BlockIndexRef& index = in_.index();
    const KeyLayout& layout = out_.layout();
    std::vector<std::uint64_t> parts(axes_.part_count());
    std::vector<Block> last(axes_.offsets());
    for (std::int64_t rank = begin; rank < end; ++rank) {
      const std::uint64_t out_key = out_.sorted_keys()[static_cast<std::size_t>(rank)];
      const std::int64_t batch = decode_batch(layout, out_key);
      if (batch >= in_.batch_size()) continue;
      std::array<std::int64_t, kMaxDimension> cell{};
      for (int axis = 0; axis < layout.dimension; ++axis) {
        cell[static_cast<std::size_t>(axis)] = decode_axis(layout, out_key, axis);
      }
      axes_.find_parts(in_.layout(), ranges_, cell.data(), parts);
      const std::uint64_t batch_part = index.layout.batch_bits == 0
                                           ? 0
                                           : static_cast<std::uint64_t>(batch)
                                                 << index.layout.batch_shift;
      FoundPair* next = found.reserve();
      for (std::size_t k = 0; k < last.size(); ++k) {
        const std::uint64_t key = axes_.key(k, parts) | batch_part;
        if ((key & OffsetAxes::kNoCell) != 0) continue;
        if (last[k].key != key >> kBlockBits) {
          last[k] = {key >> kBlockBits, index.find_block(key >> kBlockBits)};
        }
        const std::int64_t block = last[k].block;
        const auto local = static_cast<int>(key & (kBlockCells - 1));
        if (block < 0 || (index.occupancy[block] >> local & 1) == 0) continue;
        *next++ = {static_cast<std::uint32_t>(k), index.rank_in_block(block, local),
                   static_cast<std::int32_t>(rank)};
      }
      found.commit(next);
    }
  }

 private:
  struct Block {
    std::uint64_t key = OffsetAxes::kNoCell;   // no block has it
    std::int64_t block = -1;
  };
  const CoordinateSet& in_;
  const CoordinateSet& out_;
  OffsetAxes axes_;
  AxisRanges ranges_;
};

}   // namespace

KernelPairs search_rows(const CoordinateSet& in, const CoordinateSet& out,
                        const KernelWindow& window, Reach reach) {
  const RowSearch search(in, out, window, reach);
  const IdentityPairs<std::int64_t (*)(std::int64_t)>* none = nullptr;
  return collect_pairs(in, out, search.offsets(), out.size(),
                       pair_grain(out.size(), search.offsets(), kLeastChunk), none,
                       [&](std::int64_t begin, std::int64_t end, PairSink& found) {
                         search.find(begin, end, found);
                       });
}

}   // namespace pumice
