// The CPU allocator: aligned blocks; freed ones serve the next layer.
#include <pumice/core/allocator.hpp>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>

#include <pumice/core/error.hpp>
#include <pumice/core/huge_pages.hpp>

#include "core/block_heap.hpp"

namespace pumice {
namespace {

// Touching fresh memory costs 0.8 ms/MiB in 4 KiB pages on a virtual machine, 0.15–0.4 in 2 MiB
// pages, against 0.07 to write memory that is there already. So large blocks are carved from
// regions of huge pages, and freed ones serve the next layer.
#if defined(__has_feature)
#define PUMICE_HAS_FEATURE(name) __has_feature(name)   // clang
#else
#define PUMICE_HAS_FEATURE(name) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || PUMICE_HAS_FEATURE(address_sanitizer)
constexpr std::size_t kLarge = std::numeric_limits<std::size_t>::max();   // each block on its own
#else
constexpr std::size_t kLarge = std::size_t{1} << 20;
#endif
constexpr std::size_t kStep = std::size_t{64} << 10;
constexpr std::size_t kHugePage = std::size_t{2} << 20;

constexpr std::size_t round_up(std::size_t bytes, std::size_t step) {
  return (bytes + step - 1) / step * step;
}

/// Regions without a block in use are kept as long as all together are no more than what was once
/// in use at a time.
class CpuAllocator final : public Allocator {
 public:
  ~CpuAllocator() override { release(); }

  void* allocate(std::size_t bytes, StreamView) override {
    const std::lock_guard lock(mutex_);
    if (bytes < kLarge) {
      const std::size_t size = round_up(bytes, kAlignment);
      void* block = from_system(kAlignment, size);
      count(static_cast<std::int64_t>(size));
      return block;
    }
    const std::size_t size = round_up(bytes, kStep);
    void* block = heap_.take(size);
    if (block == nullptr) {
      add_region(round_up(size, kHugePage));
      block = heap_.take(size);
    }
    count(static_cast<std::int64_t>(size));
    return block;
  }

  void deallocate(void* data, std::size_t bytes, StreamView) noexcept override {
    const std::lock_guard lock(mutex_);
    if (heap_.holds(data)) {
      count(-static_cast<std::int64_t>(heap_.give_back(data)));
      return;
    }
    count(-static_cast<std::int64_t>(round_up(bytes, kAlignment)));
    std::free(data);
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
    const std::lock_guard lock(mutex_);
    while (drop_region()) {
    }
  }

 private:
  void* from_system(std::size_t alignment, std::size_t size) {
    void* block = std::aligned_alloc(alignment, size);
    while (block == nullptr && drop_region())
      block = std::aligned_alloc(alignment, size);
    if (block == nullptr) {
      throw Error(detail::concatenate("out of memory: ", size, " bytes asked for, ",
                                      use_.current_bytes, " in use"));
    }
    return block;
  }
  void add_region(std::size_t size) {
    const auto most = static_cast<std::size_t>(use_.peak_bytes);
    while (heap_.region_bytes() + size > most && drop_region()) {
    }
    void* region = from_system(kHugePage, size);
    prefer_huge_pages(region, size);
    heap_.add_region(static_cast<std::byte*>(region), size);
  }
  /// Gives one unused region back to the system.
  bool drop_region() noexcept {
    void* region = heap_.remove_free_region();
    std::free(region);
    return region != nullptr;
  }
  void count(std::int64_t bytes) {
    use_.current_bytes += bytes;
    use_.peak_bytes = std::max(use_.peak_bytes, use_.current_bytes);
  }

  std::mutex mutex_;
  BlockHeap heap_;
  MemoryUse use_{};
};

const std::shared_ptr<CpuAllocator>& instance() {
  static const auto allocator = std::make_shared<CpuAllocator>();
  return allocator;
}

}   // namespace

const std::shared_ptr<Allocator>& cpu_allocator() {
  static const std::shared_ptr<Allocator> allocator = instance();
  return allocator;
}
MemoryUse cpu_memory_use() {
  return instance()->use();
}
void reset_cpu_memory_peak() {
  instance()->reset_peak();
}
void release_cpu_cache() {
  instance()->release();
}

}   // namespace pumice
