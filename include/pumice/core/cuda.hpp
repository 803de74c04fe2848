// Whether CUDA can be used here, on what, and the memory it hands out. Pumice opens the driver when
// first asked; it is built without CUDA and runs without.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pumice/core/allocator.hpp>

namespace pumice {

struct CudaSupport {
  bool available = false;
  std::string reason;    // why not, in a sentence; empty when available
  std::string version;   // the driver's, "13.0"; empty without one
  int devices = 0;
};

/// Never throws.
const CudaSupport& cuda_support() noexcept;

struct CudaDeviceInfo {
  std::string name;
  int major = 0;   // compute capability
  int minor = 0;
  int multiprocessors = 0;
  std::int64_t memory_bytes = 0;
  std::int64_t l2_bytes = 0;
  int shared_bytes = 0;   // the most one block can have
};

/// UserError where `index` names no device or CUDA is not available.
const CudaDeviceInfo& cuda_device_info(int index);

/// The process-wide allocator of a device: stream-ordered, from a pool of its own that keeps freed
/// memory for reuse, kCudaAlignment-aligned; counts bytes. What is allocated while a stream is
/// captured belongs to the graph and has to be freed within it.
const std::shared_ptr<Allocator>& cuda_allocator(int index);
inline constexpr std::size_t kCudaAlignment = 256;

/// Bytes handed out by `cuda_allocator(index)`.
MemoryUse cuda_memory_use(int index);
/// Starts a new peak at the current use.
void reset_cuda_memory_peak(int index);
/// Waits for the device and returns the pool's unused memory to it.
void release_cuda_cache(int index);

}   // namespace pumice
