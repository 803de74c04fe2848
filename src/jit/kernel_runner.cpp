// The runner that launches.
#include "jit/kernel_runner.hpp"

#include "core/cuda/status.hpp"
#include "jit/module.hpp"

namespace pumice::jit {

DeviceRunner::DeviceRunner(StreamView stream, std::shared_ptr<Allocator> allocator)
    : KernelRunner(stream, std::move(allocator), cuda::device_status(stream)) {}

void DeviceRunner::run_bytes(const KernelName& kernel, const LaunchShape& shape,
                             const void* arguments, std::size_t bytes) {
  const Module& module = load(stream().device, *kernel.source);
  detail::launch_bytes(module.kernel(kernel.name), shape, stream(), arguments, bytes);
}

}   // namespace pumice::jit
