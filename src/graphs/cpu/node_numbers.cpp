#include "graphs/cpu/node_numbers.hpp"

#include <algorithm>
#include <atomic>
#include <bit>
#include <numeric>
#include <utility>
#include <vector>

#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;   // entries or slots a task
constexpr std::uint64_t kEmpty = ~std::uint64_t{0};      // of node 2^32 - 1, which there is not
constexpr std::uint32_t kNew = std::uint32_t{1} << 31;

std::uint64_t slot_of(std::int32_t node, std::uint64_t value) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | value;
}
std::uint32_t node_in(std::uint64_t slot) {
  return static_cast<std::uint32_t>(slot >> 32);
}

/// A power of two of slots, of which at most half are used.
std::int64_t slots_for(std::int64_t nodes) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(nodes) * 2 + 2));
}

Buffer<std::uint64_t> empty_slots(std::int64_t count) {
  Buffer<std::uint64_t> slots(count);
  parallel_for(count, kChunk * 4, [&](std::int64_t begin, std::int64_t end) {
    std::fill(slots.data() + begin, slots.data() + end, kEmpty);
  });
  return slots;
}

/// Where the node is from now on. Of several values that are given for a node the least one stays:
/// a number, where it has one, else the first place.
std::int64_t put(Buffer<std::uint64_t>& slots, std::int32_t node, std::uint64_t value) {
  const std::int64_t mask = slots.size() - 1;
  const std::uint64_t wanted = slot_of(node, value);
  auto at = static_cast<std::int64_t>(mix_bits(static_cast<std::uint64_t>(node))) & mask;
  for (;; at = (at + 1) & mask) {
    const std::atomic_ref<std::uint64_t> slot(slots[at]);
    std::uint64_t found = slot.load(std::memory_order_relaxed);
    while (found == kEmpty || (node_in(found) == node_in(wanted) && found > wanted)) {
      if (slot.compare_exchange_weak(found, wanted, std::memory_order_relaxed)) return at;
    }
    if (node_in(found) == node_in(wanted)) return at;
  }
}

}   // namespace

NodeNumbers::NodeNumbers(std::int64_t nodes)
    : slots_(empty_slots(slots_for(nodes))), nodes_(nodes) {}

void NodeNumbers::reserve(std::int64_t nodes) {
  const std::int64_t room = size_ + nodes;
  if (room > nodes_.size()) {
    Buffer<std::int32_t> longer(room);
    std::copy_n(nodes_.data(), size_, longer.data());
    nodes_ = std::move(longer);
  }
  if (slots_for(room) <= slots_.size()) return;
  slots_ = empty_slots(slots_for(room));
  parallel_for(size_, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t number = begin; number < end; ++number)
      put(slots_, nodes_[number], static_cast<std::uint64_t>(number));
  });
}

void NodeNumbers::number(std::span<const std::int32_t> named, std::span<std::int32_t> number) {
  const auto size = static_cast<std::int64_t>(named.size());
  const std::int64_t chunks = (size + kChunk - 1) / kChunk;
  Buffer<std::int64_t> slot(size);
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      slot[i] =
          put(slots_, named[static_cast<std::size_t>(i)], kNew + static_cast<std::uint64_t>(i));
  });
  const auto is_first = [&](std::int64_t i) {
    return static_cast<std::uint32_t>(slots_[slot[i]]) == kNew + static_cast<std::uint32_t>(i);
  };
  std::vector<std::int64_t> next(static_cast<std::size_t>(chunks));   // new ones, chunk by chunk
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t count = 0;
    for (std::int64_t i = begin; i < end; ++i)
      count += is_first(i) ? 1 : 0;
    next[static_cast<std::size_t>(begin / kChunk)] = count;
  });
  const std::int64_t known = std::accumulate(next.begin(), next.end(), size_);
  std::exclusive_scan(next.begin(), next.end(), next.begin(), size_);
  // Numbers are below kNew, so that a slot that was numbered is no new one for another entry.
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::int64_t mine = next[static_cast<std::size_t>(begin / kChunk)];
    for (std::int64_t i = begin; i < end; ++i) {
      const std::atomic_ref<std::uint64_t> place(slots_[slot[i]]);
      const std::uint64_t found = place.load(std::memory_order_relaxed);
      if (static_cast<std::uint32_t>(found) != kNew + static_cast<std::uint32_t>(i)) continue;
      const std::int32_t node = named[static_cast<std::size_t>(i)];
      place.store(slot_of(node, static_cast<std::uint64_t>(mine)), std::memory_order_relaxed);
      nodes_[mine++] = node;
    }
  });
  size_ = known;
  parallel_for(size, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i)
      number[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(slots_[slot[i]]);
  });
}

}   // namespace pumice::cpu
