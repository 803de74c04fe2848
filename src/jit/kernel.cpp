// Attributes of loaded kernels.
#include "jit/kernel.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include "core/cuda/context.hpp"

namespace pumice::jit {
namespace detail {
namespace {

/// The size of the kernel's argument; -1 where the driver (before CUDA 12.4) cannot say. A
/// kernel is loaded when first asked for in a context, so there has to be a current one.
std::int64_t size_of_argument(cuda::KernelHandle handle) {
  const cuda::Driver& driver = cuda::driver();
  if (driver.cuKernelGetParamInfo == nullptr) return -1;
  std::size_t offset = 0;
  std::size_t bytes = 0;
  PUMICE_CUDA(cuKernelGetParamInfo(handle, 0, &offset, &bytes));
  return static_cast<std::int64_t>(bytes);
}

}   // namespace

LoadedKernel::LoadedKernel(std::string kernel_name, cuda::KernelHandle kernel_handle,
                           LaunchTraits kernel_traits)
    : name(std::move(kernel_name)),
      handle(kernel_handle),
      traits(kernel_traits),
      slots_(
          std::make_unique<DeviceSlot[]>(static_cast<std::size_t>(cuda::driver_state().devices))) {}

KernelLimits& LoadedKernel::limits(Device device) const {
  DeviceSlot& slot = slots_[static_cast<std::size_t>(device.index)];
  std::call_once(slot.once, [&] {
    const cuda::ContextGuard guard(device);
    const cuda::RelaxedCapture relaxed;
    // Loads it now, and not at its first launch, which may be recorded into a graph.
    cuda::FunctionHandle loaded = nullptr;
    PUMICE_CUDA(cuKernelGetFunction(&loaded, handle));
    const auto attribute = [&](cuda::KernelAttribute which) {
      int value = 0;
      PUMICE_CUDA(cuKernelGetAttribute(&value, which, handle, cuda::context_of(device).id));
      return value;
    };
    slot.limits.argument_bytes = size_of_argument(handle);
    slot.limits.most_threads = attribute(cuda::kMostThreads);
    slot.limits.static_shared_bytes = attribute(cuda::kStaticSharedBytes);
    slot.limits.most_shared_bytes = cuda_device_info(device.index).shared_bytes;
    slot.limits.allowed_dynamic_bytes = attribute(cuda::kMostDynamicSharedBytes);
  });
  return slot.limits;
}

}   // namespace detail

int Kernel::blocks_per_multiprocessor(Device device, int threads, int shared_bytes) const {
  const cuda::ContextGuard guard(device);
  cuda::FunctionHandle function = nullptr;
  PUMICE_CUDA(cuKernelGetFunction(&function, loaded_->handle));
  int blocks = 0;
  PUMICE_CUDA(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, threads,
                                                          static_cast<std::size_t>(shared_bytes)));
  return blocks;
}

}   // namespace pumice::jit
