// Where buffers come from. The default allocator serves the CPU; a host framework may pass its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <pumice/core/device.hpp>

namespace pumice {

inline constexpr std::size_t kAlignment = 64;   // one cache line, one AVX-512 vector

/// Stream-ordered memory: what `allocate` returns may be used by work enqueued on `stream` after
/// the call, and `deallocate` may be called while work enqueued before it is still running.
class Allocator {
 public:
  virtual ~Allocator() = default;
  /// Never null for bytes > 0; throws Error with the size when memory is exhausted.
  virtual void* allocate(std::size_t bytes, StreamView stream) = 0;
  virtual void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept = 0;
};

struct MemoryUse {
  std::int64_t current_bytes = 0;
  std::int64_t peak_bytes = 0;
};

/// What buffers without an allocator of their own come from: the innermost AllocatorScope of this
/// thread for that device, else the process-wide allocator of the device. UserError where there is
/// no such device.
std::shared_ptr<Allocator> default_allocator(Device device);

/// The same for what is kept when a pass ends, as packed weights are: scopes of one pass are left
/// out.
std::shared_ptr<Allocator> lasting_allocator(Device device);

/// Whether this thread's buffers on `device` come from a scope of one pass, so that none of them
/// may be kept.
bool allocates_for_one_pass(Device device);

enum class ScopeOf { everything, one_pass };

/// For as long as it lives, this thread's buffers on `device` come from `allocator`: a plan's slab,
/// a host framework's pool. Of `one_pass`: memory that others overwrite when the pass has ended.
class AllocatorScope {
 public:
  AllocatorScope(Device device, std::shared_ptr<Allocator> allocator,
                 ScopeOf of = ScopeOf::everything);
  AllocatorScope(const AllocatorScope&) = delete;
  AllocatorScope& operator=(const AllocatorScope&) = delete;
  ~AllocatorScope();
};

/// The process-wide CPU allocator: kAlignment-aligned, keeps freed blocks for reuse, counts bytes.
const std::shared_ptr<Allocator>& cpu_allocator();
/// Bytes handed out by `cpu_allocator`.
MemoryUse cpu_memory_use();
/// Starts a new peak at the current use.
void reset_cpu_memory_peak();
/// Returns the CPU allocator's cached blocks to the system.
void release_cpu_cache();

}   // namespace pumice
