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

/// Regions, of one heap or of several that overwrite each other.
struct StreamHeap::Regions {
  StreamView stream;
  std::shared_ptr<Allocator> source;
  std::mutex mutex;
  std::vector<Buffer<std::byte>> all;
};

struct StreamHeap::State {
  std::shared_ptr<Regions> regions;
  mutable std::mutex mutex;
  BlockHeap heap;
  std::size_t carved = 0;   // so many regions, the first ones
  std::int64_t used = 0;

  /// Adds the regions that were taken since; under the lock of `regions`.
  void carve_all() {
    for (; carved < regions->all.size(); ++carved) {
      Buffer<std::byte>& region = regions->all[carved];
      heap.add_region(region.data(), region.bytes());
    }
  }
};

StreamHeap::StreamHeap(StreamView stream, std::shared_ptr<Allocator> source)
    : state_(std::make_unique<State>()) {
  state_->regions = std::make_shared<Regions>();
  state_->regions->stream = stream;
  state_->regions->source = source ? std::move(source) : default_allocator(stream.device);
}

StreamHeap::StreamHeap(const StreamHeap& other) : state_(std::make_unique<State>()) {
  state_->regions = other.state_->regions;
  const std::lock_guard lock(state_->regions->mutex);
  state_->carve_all();
}

StreamHeap::~StreamHeap() = default;

void* StreamHeap::allocate(std::size_t bytes, StreamView stream) {
  State& state = *state_;
  Regions& regions = *state.regions;
  PUMICE_EXPECTS(stream == regions.stream, "memory of a plan's own on ",
                 to_string(regions.stream.device), " was asked for on another stream, of ",
                 to_string(stream.device), "; run the plan on the stream it was made for");
  const std::size_t size = whole_steps(bytes);
  const std::lock_guard lock(state.mutex);
  std::byte* block = state.heap.take(size);
  if (block == nullptr) {
    PUMICE_EXPECTS(!is_capturing(stream), "a captured sequence asks for ", bytes,
                   " bytes more than when it ran before; run it once with the same sizes first");
    const std::lock_guard regions_lock(regions.mutex);
    state.carve_all();
    block = state.heap.take(size);
    if (block == nullptr) {
      const auto region = static_cast<std::int64_t>(std::max(size, kLeastRegion));
      regions.all.emplace_back(region, stream, regions.source);
      state.carve_all();
      block = state.heap.take(size);
    }
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
