// Regions that a heap of blocks carves.
#include <pumice/core/stream_heap.hpp>

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/cuda.hpp>
#include <pumice/core/stream.hpp>

#include "core/block_heap.hpp"

namespace pumice {
namespace {

/// Regions are at least this large, so that a network's memory is a handful of them.
constexpr std::size_t kLeastRegion = std::size_t{64} << 20;

std::size_t whole_steps(std::size_t bytes) {
  return (std::max<std::size_t>(bytes, 1) + kCudaAlignment - 1) / kCudaAlignment * kCudaAlignment;
}

}   // namespace

struct StreamHeap::State {
  StreamView stream;
  std::shared_ptr<Allocator> source;
  mutable std::mutex mutex;
  BlockHeap heap;
  std::vector<Buffer<std::byte>> regions;
  std::int64_t used = 0;
};

StreamHeap::StreamHeap(StreamView stream, std::shared_ptr<Allocator> source)
    : state_(std::make_unique<State>()) {
  state_->stream = stream;
  state_->source = source ? std::move(source) : default_allocator(stream.device);
}

StreamHeap::~StreamHeap() = default;

void* StreamHeap::allocate(std::size_t bytes, StreamView stream) {
  State& state = *state_;
  PUMICE_EXPECTS(stream == state.stream, "memory of a plan's own on ",
                 to_string(state.stream.device), " was asked for on another stream, of ",
                 to_string(stream.device), "; run the plan on the stream it was made for");
  const std::size_t size = whole_steps(bytes);
  const std::lock_guard lock(state.mutex);
  std::byte* block = state.heap.take(size);
  if (block == nullptr) {
    PUMICE_EXPECTS(!is_capturing(stream), "a captured sequence asks for ", bytes,
                   " bytes more than when it ran before; run it once with the same sizes first");
    const std::size_t region = std::max(size, kLeastRegion);
    state.regions.emplace_back(static_cast<std::int64_t>(region), stream, state.source);
    state.heap.add_region(state.regions.back().data(), region);
    block = state.heap.take(size);
  }
  state.used += static_cast<std::int64_t>(size);
  return block;
}

void StreamHeap::deallocate(void* data, std::size_t, StreamView) noexcept {
  const std::lock_guard lock(state_->mutex);
  state_->used -= static_cast<std::int64_t>(state_->heap.give_back(data));
}

std::int64_t StreamHeap::reserved_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<std::int64_t>(state_->heap.region_bytes());
}

std::int64_t StreamHeap::used_bytes() const {
  const std::lock_guard lock(state_->mutex);
  return state_->used;
}

}   // namespace pumice
