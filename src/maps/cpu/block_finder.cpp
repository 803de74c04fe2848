// Grouping of blocks, and the table of groups.
#include "maps/cpu/block_finder.hpp"

#include <algorithm>

#include "coords/cpu/compact.hpp"

namespace pumice {

BlockFinder::BlockFinder(const BlockIndexRef& index) {
  const std::uint64_t* key = index.block_key;
  const Compaction starts(index.blocks, [key](std::int64_t block) {
    return block == 0 || key[block] >> kBlockBits != key[block - 1] >> kBlockBits;
  });
  groups_ = Buffer<Group>(starts.kept());
  starts.for_each([&](std::int64_t first, std::int64_t at) {
    Group group{key[first] >> kBlockBits, 0, static_cast<std::int32_t>(first)};
    for (std::int64_t block = first; block < index.blocks && key[block] >> kBlockBits == group.key;
         ++block) {
      group.blocks |= std::uint64_t{1} << (key[block] & (kBlockCells - 1));
    }
    groups_[at] = group;
  });

  const auto size = std::bit_ceil(static_cast<std::uint64_t>(2 * groups_.size() + 1));
  slots_ = Buffer<std::int32_t>(static_cast<std::int64_t>(size));
  slot_mask_ = static_cast<std::uint32_t>(size - 1);
  std::fill_n(slots_.data(), size, -1);
  for (std::int64_t group = 0; group < groups_.size(); ++group) {
    std::uint32_t slot = block_hash(groups_[group].key) & slot_mask_;
    while (slots_[slot] >= 0)
      slot = (slot + 1) & slot_mask_;
    slots_[slot] = static_cast<std::int32_t>(group);
  }
}

}   // namespace pumice
