// The runner that launches.
#include "jit/kernel_runner.hpp"

#include <array>
#include <cstdint>

#include "core/cuda/status.hpp"
#include "jit/module.hpp"

namespace pumice::jit {
namespace {

/// Kernels that this thread launched, by the address of their source and name, which stay: a launch
/// looks at no text.
const Kernel& loaded_kernel(Device device, const KernelName& kernel) {
  struct Entry {
    const Source* source = nullptr;
    const char* name = nullptr;
    int device = 0;
    Kernel kernel;
  };
  thread_local std::array<Entry, 256> entries;
  const auto bits = reinterpret_cast<std::uintptr_t>(kernel.source) * 31 +
                    reinterpret_cast<std::uintptr_t>(kernel.name) +
                    static_cast<std::uintptr_t>(device.index);
  Entry& entry = entries[(bits ^ bits >> 7 ^ bits >> 15) % entries.size()];
  if (entry.source != kernel.source || entry.name != kernel.name || entry.device != device.index) {
    const Kernel found = load(device, *kernel.source).kernel(kernel.name);
    entry = {kernel.source, kernel.name, device.index, found};
  }
  return entry.kernel;
}

}   // namespace

DeviceRunner::DeviceRunner(StreamView stream, std::shared_ptr<Allocator> allocator)
    : DeviceRunner(stream, std::move(allocator), nullptr) {}

DeviceRunner::DeviceRunner(StreamView stream, std::shared_ptr<Allocator> allocator,
                           StatusRecord* status)
    : KernelRunner(stream, std::move(allocator),
                   status != nullptr ? status : cuda::device_status(stream)) {}

void DeviceRunner::run_bytes(const KernelName& kernel, const LaunchShape& shape,
                             const void* arguments, std::size_t bytes) {
  detail::launch_bytes(loaded_kernel(stream().device, kernel), shape, stream(), arguments, bytes);
}

}   // namespace pumice::jit
