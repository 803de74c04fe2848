#include <pumice/core/block_cache.hpp>

#include <algorithm>
#include <bit>

namespace pumice {

std::size_t BlockCache::rounded(std::size_t bytes) {
  constexpr std::size_t kSmallest = 512;   // what PyTorch's own blocks are multiples of
  const std::size_t step = std::max(kSmallest, std::bit_floor(bytes) / 4);
  return std::max(kSmallest, (bytes + step - 1) / step * step);
}

BlockCache::Blocks& BlockCache::blocks_of(std::size_t size, const void* stream) {
  Blocks& blocks = of_stream_[stream][size];
  blocks.size = size;
  return blocks;
}

void* BlockCache::take(std::size_t bytes, const void* stream) {
  Blocks& blocks = blocks_of(rounded(bytes), stream);
  blocks.asked = ++calls_;
  if (blocks.free.empty()) return nullptr;
  void* block = blocks.free.back();
  blocks.free.pop_back();
  bytes_ -= blocks.size;
  return block;
}

BlockCache::Blocks* BlockCache::longest_unasked() {
  Blocks* longest = nullptr;
  for (auto& [stream, of_size] : of_stream_) {
    for (auto& [size, blocks] : of_size) {
      const bool is_older = longest == nullptr || blocks.asked < longest->asked;
      if (!blocks.free.empty() && is_older) longest = &blocks;
    }
  }
  return longest;
}

std::vector<void*> BlockCache::keep(void* block, std::size_t bytes, const void* stream) {
  Blocks& blocks = blocks_of(rounded(bytes), stream);
  blocks.free.push_back(block);
  bytes_ += blocks.size;
  std::vector<void*> going;
  while (bytes_ > most_) {
    Blocks* longest = longest_unasked();
    going.push_back(longest->free.back());
    longest->free.pop_back();
    bytes_ -= longest->size;
  }
  return going;
}

std::vector<void*> BlockCache::release() {
  std::vector<void*> all;
  for (const auto& [stream, of_size] : of_stream_) {
    for (const auto& [size, blocks] : of_size)
      all.insert(all.end(), blocks.free.begin(), blocks.free.end());
  }
  of_stream_.clear();
  bytes_ = 0;
  return all;
}

}   // namespace pumice
