// The runner that launches.
#include "jit/kernel_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "core/cuda/status.hpp"
#include "jit/module.hpp"

namespace pumice::jit {
namespace {

/// The address of a kernel's source and that of its name, which stay.
struct KernelKey {
  const Source* source = nullptr;
  const char* name = nullptr;
  int device = 0;
  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

struct KernelKeyHash {
  std::size_t operator()(const KernelKey& key) const {
    const std::size_t bits = reinterpret_cast<std::uintptr_t>(key.source) * 31 +
                             reinterpret_cast<std::uintptr_t>(key.name) +
                             static_cast<std::uintptr_t>(key.device);
    return bits ^ bits >> 7 ^ bits >> 15;
  }
};

/// Of all kernels that this thread has launched, whose text `load` would look at again: no launch
/// of a kernel makes one of another do so.
const Kernel& loaded_kernel(Device device, const KernelName& kernel) {
  thread_local std::unordered_map<KernelKey, Kernel, KernelKeyHash> kernels;
  const KernelKey key{kernel.source, kernel.name, device.index};
  if (const auto known = kernels.find(key); known != kernels.end()) return known->second;
  const Kernel found = load(device, *kernel.source).kernel(kernel.name);
  return kernels.emplace(key, found).first->second;
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
