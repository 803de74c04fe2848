// The allocator of a CUDA device: the driver's stream-ordered memory, from a pool of our own.
#include <algorithm>
#include <limits>
#include <mutex>
#include <unordered_set>
#include <vector>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/context.hpp"

namespace pumice {
namespace {

/// A capture can neither free what was allocated before it, nor hand on what was allocated in it.
/// So what is freed during a capture, but older, is kept until one is over.
class PoolAllocator final : public Allocator {
 public:
  explicit PoolAllocator(int index) : context_(cuda::context_of({DeviceKind::cuda, index})) {
    const cuda::ContextGuard guard(context_);
    const cuda::RelaxedCapture relaxed;
    cuda::PoolProperties properties;
    properties.location.id = context_.id;
    PUMICE_CUDA(cuMemPoolCreate(&pool_, &properties));
    // Freed memory stays with the pool until release(): to get it from the system anew costs
    // hundreds of microseconds and waits for the device.
    std::uint64_t threshold = std::numeric_limits<std::uint64_t>::max();
    PUMICE_CUDA(cuMemPoolSetAttribute(pool_, cuda::kReleaseThreshold, &threshold));
  }

  void* allocate(std::size_t bytes, StreamView stream) override {
    check_device(stream);
    const cuda::ContextGuard guard(context_);
    const bool captured = is_capturing(stream);
    if (!captured) free_postponed();
    cuda::DeviceAddress address = 0;
    cuda::Result result = take(&address, bytes, stream);
    if (result == cuda::kOutOfMemory && !captured) {
      release();
      result = take(&address, bytes, stream);
    }
    if (result == cuda::kOutOfMemory) raise_out_of_memory(bytes);
    cuda::check(result, "cuMemAllocFromPoolAsync");
    const std::lock_guard lock(mutex_);
    if (captured) captured_.insert(address);
    count(static_cast<std::int64_t>(bytes));
    return reinterpret_cast<void*>(address);
  }

  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    try {
      {
        const std::lock_guard lock(mutex_);
        count(-static_cast<std::int64_t>(bytes));
      }
      const cuda::ContextGuard guard(context_);
      const cuda::DeviceAddress address = cuda::address_of(data);
      if (is_capturing(stream) && !forget_captured(address)) {
        const std::lock_guard lock(mutex_);
        postponed_.push_back({address, stream});
        return;
      }
      free(address, stream);
    } catch (const Error& error) {
      warn(detail::concatenate("memory on ", to_string(context_.device),
                               " not given back: ", error.what()));
    }
  }

  MemoryUse use() {
    const std::lock_guard lock(mutex_);
    return use_;
  }
  void reset_peak() {
    const std::lock_guard lock(mutex_);
    use_.peak_bytes = use_.current_bytes;
  }
  void release() {
    const cuda::ContextGuard guard(context_);
    free_postponed();
    PUMICE_CUDA(cuCtxSynchronize());
    PUMICE_CUDA(cuMemPoolTrimTo(pool_, 0));
  }

 private:
  struct Block {
    cuda::DeviceAddress address;
    StreamView stream;
  };

  void check_device(StreamView stream) const {
    PUMICE_ENSURES(stream.device == context_.device, "memory of ", to_string(context_.device),
                   " asked for on a stream of ", to_string(stream.device));
  }
  cuda::Result take(cuda::DeviceAddress* address, std::size_t bytes, StreamView stream) const {
    return cuda::driver().cuMemAllocFromPoolAsync(address, bytes, pool_, cuda::handle_of(stream));
  }
  static void free(cuda::DeviceAddress address, StreamView stream) {
    const cuda::Result result = cuda::driver().cuMemFreeAsync(address, cuda::handle_of(stream));
    // At the end of the process the driver may be gone before the last static buffer.
    if (result != cuda::kDeinitialized) cuda::check(result, "cuMemFreeAsync");
  }
  /// Whether `address` was allocated during a capture; it then is no longer known.
  bool forget_captured(cuda::DeviceAddress address) {
    const std::lock_guard lock(mutex_);
    return captured_.erase(address) != 0;
  }
  void free_postponed() {
    std::vector<Block> blocks;
    {
      const std::lock_guard lock(mutex_);
      blocks.swap(postponed_);
    }
    for (const Block& block : blocks) {
      if (is_capturing(block.stream)) {
        const std::lock_guard lock(mutex_);
        postponed_.push_back(block);
      } else {
        free(block.address, block.stream);
      }
    }
  }
  [[noreturn]] void raise_out_of_memory(std::size_t bytes) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    PUMICE_CUDA(cuMemGetInfo_v2(&free_bytes, &total_bytes));
    throw Error(detail::concatenate(
        "out of memory on ", to_string(context_.device), ": ", bytes, " bytes asked for, ",
        use().current_bytes, " in use by Pumice, ", free_bytes, " of ", total_bytes, " free"));
  }
  void count(std::int64_t bytes) {
    use_.current_bytes += bytes;
    use_.peak_bytes = std::max(use_.peak_bytes, use_.current_bytes);
  }

  const cuda::DeviceContext& context_;
  cuda::PoolHandle pool_ = nullptr;
  std::mutex mutex_;
  MemoryUse use_{};
  std::unordered_set<cuda::DeviceAddress> captured_;
  std::vector<Block> postponed_;
};

struct Slot {
  std::once_flag once;
  std::shared_ptr<PoolAllocator> pool;
  std::shared_ptr<Allocator> allocator;
};

Slot& slot_of(int index) {
  static auto& all = *new std::vector<Slot>(   // never destroyed: static buffers come back late
      static_cast<std::size_t>(cuda::driver_state().devices));
  cuda::context_of({DeviceKind::cuda, index});   // refuses what is not there
  Slot& slot = all[static_cast<std::size_t>(index)];
  std::call_once(slot.once, [&] {
    slot.pool = std::make_shared<PoolAllocator>(index);
    slot.allocator = slot.pool;
  });
  return slot;
}

}   // namespace

const std::shared_ptr<Allocator>& cuda_allocator(int index) {
  return slot_of(index).allocator;
}
MemoryUse cuda_memory_use(int index) {
  return slot_of(index).pool->use();
}
void reset_cuda_memory_peak(int index) {
  slot_of(index).pool->reset_peak();
}
void release_cuda_cache(int index) {
  slot_of(index).pool->release();
}

}   // namespace pumice
