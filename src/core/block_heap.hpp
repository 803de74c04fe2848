// Large blocks carved out of regions: best fit, split when taken, merged with their neighbours when
// given back. Holds addresses and sizes only; the regions are the caller's.
#pragma once

#include <cstddef>
#include <map>

namespace pumice {

class BlockHeap {
 public:
  /// A region the heap may carve from now on; none of it is taken yet.
  void add_region(std::byte* base, std::size_t bytes);
  /// The smallest free block of at least `bytes`, cut to that size; null where none is.
  std::byte* take(std::size_t bytes);
  bool holds(const void* block) const;
  /// Bytes of a block that was taken, which is free from now on.
  std::size_t give_back(void* block) noexcept;
  /// The smallest region without a taken block, which the heap forgets; null where none is.
  std::byte* remove_free_region() noexcept;

  std::size_t region_bytes() const { return region_bytes_; }

 private:
  struct Block {
    std::size_t bytes = 0;
    std::size_t region_bytes = 0;   // of the region that starts here, 0 inside of one
    bool free = true;
  };
  using Blocks = std::map<std::byte*, Block, std::less<>>;

  void merge_with_next(Blocks::iterator block) noexcept;

  Blocks blocks_;   // tens of them: a search looks at all
  std::size_t region_bytes_ = 0;
};

}   // namespace pumice
