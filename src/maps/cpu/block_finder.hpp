// Finds many blocks that lie close together: blocks in groups of 64, as cells are in blocks. The
// neighbours of a run of blocks lie in few groups, so that most look-ups end in a cache of 64
// groups and touch neither the table nor the list of keys, which for a scan are 400 KB.
#pragma once

#include <array>
#include <bit>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

class BlockFinder {
 public:
  explicit BlockFinder(const BlockIndexRef& index);

 private:
  struct Group {
    std::uint64_t key;      // block key >> kBlockBits
    std::uint64_t blocks;   // which of the 64 there are
    std::int32_t first_block;
  };
  Group find_group(std::uint64_t key) const {
    std::uint32_t slot = block_hash(key) & slot_mask_;
    while (slots_[slot] >= 0 && groups_[slots_[slot]].key != key)
      slot = (slot + 1) & slot_mask_;
    return slots_[slot] < 0 ? Group{key, 0, 0} : groups_[slots_[slot]];
  }

  Buffer<Group> groups_;
  Buffer<std::int32_t> slots_;
  std::uint32_t slot_mask_ = 0;

 public:
  /// Remembers the groups seen last; one for each thread of work.
  class Cursor {
   public:
    explicit Cursor(const BlockFinder& finder) : finder_(finder) {
      cache_.fill({~std::uint64_t{0}, 0, 0});   // no group has this key
    }
    struct Found {
      std::int64_t block;       // 0 when there is none
      std::uint64_t is_there;   // all ones or zero: whether a block is there cannot be foreseen,
                                // so callers should mask with it rather than branch
    };
    Found find(std::uint64_t block_key) {
      const std::uint64_t key = block_key >> kBlockBits;
      // Any 4 x 4 x 4 groups differ in the low bits of their keys, so neighbours never collide.
      Group& group = cache_[key & (kBlockCells - 1)];
      if (group.key != key) group = finder_.find_group(key);
      const std::uint64_t local = block_key & (kBlockCells - 1);
      const std::uint64_t is_there = ~(group.blocks >> local & 1) + 1;
      const std::uint64_t below = group.blocks & ((std::uint64_t{1} << local) - 1);
      const auto block = static_cast<std::uint64_t>(group.first_block + std::popcount(below));
      return {static_cast<std::int64_t>(block & is_there), is_there};
    }

   private:
    const BlockFinder& finder_;
    std::array<Group, kBlockCells> cache_;
  };
};

}   // namespace pumice
