// Best fit over a map by address.
#include "core/block_heap.hpp"

#include <iterator>

#include <pumice/core/error.hpp>

namespace pumice {

void BlockHeap::add_region(std::byte* base, std::size_t bytes) {
  blocks_.emplace(base, Block{bytes, bytes, true});
  region_bytes_ += bytes;
}

std::byte* BlockHeap::take(std::size_t bytes) {
  auto best = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    if (!block->second.free || block->second.bytes < bytes) continue;
    if (best == blocks_.end() || block->second.bytes < best->second.bytes) best = block;
  }
  if (best == blocks_.end()) return nullptr;
  if (best->second.bytes > bytes) {
    blocks_.emplace(best->first + bytes, Block{best->second.bytes - bytes, 0, true});
    best->second.bytes = bytes;
  }
  best->second.free = false;
  return best->first;
}

bool BlockHeap::holds(const void* block) const {
  return blocks_.contains(static_cast<const std::byte*>(block));
}

void BlockHeap::merge_with_next(Blocks::iterator block) noexcept {
  const auto next = std::next(block);
  if (next == blocks_.end() || !next->second.free || next->second.region_bytes != 0) return;
  block->second.bytes += next->second.bytes;
  blocks_.erase(next);
}

std::size_t BlockHeap::give_back(void* data) noexcept {
  const auto block = blocks_.find(static_cast<std::byte*>(data));
  const std::size_t bytes = block->second.bytes;
  block->second.free = true;
  merge_with_next(block);
  if (block->second.region_bytes == 0) {
    const auto previous = std::prev(block);
    if (previous->second.free) merge_with_next(previous);
  }
  return bytes;
}

std::byte* BlockHeap::remove_free_region() noexcept {
  auto smallest = blocks_.end();
  for (auto block = blocks_.begin(); block != blocks_.end(); ++block) {
    const Block& b = block->second;
    if (!b.free || b.bytes != b.region_bytes) continue;
    if (smallest == blocks_.end() || b.bytes < smallest->second.bytes) smallest = block;
  }
  if (smallest == blocks_.end()) return nullptr;
  std::byte* base = smallest->first;
  region_bytes_ -= smallest->second.bytes;
  blocks_.erase(smallest);
  return base;
}

}   // namespace pumice
