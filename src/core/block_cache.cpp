#include <pumice/core/block_cache.hpp>

#include <algorithm>
#include <bit>

namespace pumice {

std::size_t BlockCache::rounded(std::size_t bytes) {
  constexpr std::size_t kSmallest = 512;   // what PyTorch's own blocks are multiples of
  const std::size_t step = std::max(kSmallest, std::bit_floor(bytes) / 8);
  return std::max(kSmallest, (bytes + step - 1) / step * step);
}

void* BlockCache::take(std::size_t bytes, const void* stream) {
  const auto of_stream = of_stream_.find(stream);
  if (of_stream == of_stream_.end()) return nullptr;
  const std::size_t size = rounded(bytes);
  const auto found = of_stream->second.find(size);
  if (found == of_stream->second.end() || found->second.empty()) return nullptr;
  void* block = found->second.back();
  found->second.pop_back();
  bytes_ -= size;
  return block;
}

bool BlockCache::keep(void* block, std::size_t bytes, const void* stream) {
  const std::size_t size = rounded(bytes);
  if (bytes_ + size > kMost) return false;
  of_stream_[stream][size].push_back(block);
  bytes_ += size;
  return true;
}

std::vector<void*> BlockCache::release() {
  std::vector<void*> all;
  for (const auto& [stream, free] : of_stream_) {
    for (const auto& [size, blocks] : free)
      all.insert(all.end(), blocks.begin(), blocks.end());
  }
  of_stream_.clear();
  bytes_ = 0;
  return all;
}

}   // namespace pumice
