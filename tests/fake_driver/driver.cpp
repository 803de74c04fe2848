// Devices, contexts and memory of the fake driver.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "fake_driver/fake.hpp"

namespace pumice::fake {

State& state() {
  static auto& all = *new State;
  return all;
}

std::string behaviour() {
  const char* value = std::getenv("PUMICE_FAKE_DRIVER");
  return value == nullptr ? "" : value;
}

int compute_capability() {
  const char* value = std::getenv("PUMICE_FAKE_COMPUTE");
  return value == nullptr ? 90 : std::atoi(value);
}

namespace {

constexpr std::align_val_t kAlignment{512};
constexpr std::size_t kPoisonedBytes = std::size_t{1} << 20;   // of a block, at most
thread_local std::vector<cuda::ContextHandle> contexts;

Result release(cuda::DeviceAddress address) {
  State& all = state();
  const std::lock_guard lock(all.mutex);
  const auto found = all.blocks.find(address);
  if (found == all.blocks.end()) return cuda::kInvalidValue;
  all.used_bytes -= found->second.bytes;
  all.reserved_bytes += found->second.bytes;
  drop_block(reinterpret_cast<void*>(address));
  operator delete(reinterpret_cast<void*>(address), kAlignment);
  all.blocks.erase(found);
  return cuda::kSuccess;
}

void* pointer(cuda::DeviceAddress address) {
  return reinterpret_cast<void*>(address);
}

template <class T>
Result fill(cuda::DeviceAddress address, T value, std::size_t pitch, std::size_t count,
            cuda::StreamHandle stream) {
  enqueue(stream, [=] {
    for (std::size_t i = 0; i < count; ++i) {
      char* const to = static_cast<char*>(pointer(address)) + i * pitch;
      std::memcpy(to, &value, sizeof(T));
      mark_written(to, sizeof(T));
    }
  });
  return cuda::kSuccess;
}

Result copy(void* to, const void* from, std::size_t bytes, cuda::StreamHandle stream) {
  enqueue(stream, [=] {
    std::memcpy(to, from, bytes);
    mark_copied(to, from, bytes);
  });
  return cuda::kSuccess;
}

}   // namespace

bool has_context() {
  return !contexts.empty();
}

}   // namespace pumice::fake

// NOLINTBEGIN(readability-identifier-naming): the driver's own names
extern "C" {
using namespace pumice::fake;
using namespace pumice::cuda;

Result cuInit(unsigned) {
  if (behaviour() == "broken") return 999;
  return behaviour() == "no device" ? kNoDevice : kSuccess;
}
Result cuDriverGetVersion(int* version) {
  *version = behaviour() == "old" ? 11080 : 13000;
  return kSuccess;
}
Result cuGetErrorName(Result result, const char** name) {
  *name = result == kSuccess ? "CUDA_SUCCESS"
          : result == 700    ? "CUDA_ERROR_ILLEGAL_ADDRESS"
                             : "CUDA_ERROR";
  return kSuccess;
}
Result cuGetErrorString(Result result, const char** text) {
  *text = result == 700             ? "an illegal memory access was encountered"
          : result == kLaunchFailed ? last_failure().c_str()
                                    : "as the fake driver has it";
  return kSuccess;
}
Result cuDeviceGetCount(int* count) {
  *count = 2;
  return kSuccess;
}
Result cuDeviceGet(DeviceId* device, int index) {
  *device = index;
  return kSuccess;
}
Result cuDeviceGetName(char* name, int bytes, DeviceId) {
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(bytes));
  return kSuccess;
}
Result cuDeviceGetAttribute(int* value, int attribute, DeviceId) {
  switch (attribute) {
    case kComputeMajor: *value = compute_capability() / 10; break;
    case kComputeMinor: *value = compute_capability() % 10; break;
    case kMultiprocessors: *value = 4; break;
    case kSharedBytesPerBlock: *value = kMostSharedBytes; break;
    default: *value = 1;
  }
  return kSuccess;
}
Result cuDeviceTotalMem_v2(std::size_t* bytes, DeviceId) {
  *bytes = kMemoryBytes;
  return kSuccess;
}
Result cuDevicePrimaryCtxRetain(ContextHandle* context, DeviceId device) {
  *context = reinterpret_cast<ContextHandle>(static_cast<std::uintptr_t>(device) + 1);
  return kSuccess;
}
Result cuCtxGetCurrent(ContextHandle* context) {
  *context = contexts.empty() ? nullptr : contexts.back();
  return kSuccess;
}
Result cuCtxPushCurrent_v2(ContextHandle context) {
  contexts.push_back(context);
  return kSuccess;
}
Result cuCtxPopCurrent_v2(ContextHandle* context) {
  if (contexts.empty()) return 201;
  *context = contexts.back();
  contexts.pop_back();
  return kSuccess;
}
Result cuCtxSynchronize() {
  if (is_unsafe()) return kCaptureUnsupported;
  return kSuccess;
}
Result cuMemGetInfo_v2(std::size_t* free, std::size_t* total) {
  const std::lock_guard lock(state().mutex);
  *free = kMemoryBytes - state().used_bytes - state().reserved_bytes;
  *total = kMemoryBytes;
  return kSuccess;
}
Result cuMemPoolCreate(PoolHandle* pool, const PoolProperties* properties) {
  if (is_unsafe()) return kCaptureUnsupported;
  if (properties->allocation_type != 1 || properties->location.type != 1) return kInvalidValue;
  *pool = reinterpret_cast<PoolHandle>(static_cast<std::uintptr_t>(properties->location.id) + 1);
  return kSuccess;
}
Result cuMemPoolSetAttribute(PoolHandle, int, void*) {
  return kSuccess;
}
Result cuMemPoolGetAttribute(PoolHandle, int attribute, void* value) {
  const std::lock_guard lock(state().mutex);
  const std::uint64_t reserved = state().used_bytes + state().reserved_bytes;
  if (attribute == kReservedNow) std::memcpy(value, &reserved, sizeof(reserved));
  return kSuccess;
}
Result cuMemPoolTrimTo(PoolHandle, std::size_t) {
  const std::lock_guard lock(state().mutex);
  state().reserved_bytes = 0;
  return kSuccess;
}
Result cuMemAllocFromPoolAsync(DeviceAddress* address, std::size_t bytes, PoolHandle pool,
                               StreamHandle stream) {
  if (!has_context() || bytes == 0 || pool == nullptr) return kInvalidValue;
  State& all = state();
  const std::lock_guard lock(all.mutex);
  if (bytes > kMemoryBytes - all.used_bytes - all.reserved_bytes) return kOutOfMemory;
  void* data = operator new(bytes, kAlignment);
  std::memset(data, 0xa5, std::min(bytes, kPoisonedBytes));
  track_block(data, bytes);
  *address = reinterpret_cast<DeviceAddress>(data);
  all.blocks[*address] = {bytes, is_capturing(stream)};
  all.used_bytes += bytes;
  return kSuccess;
}
Result cuMemFreeAsync(DeviceAddress address, StreamHandle stream) {
  if (!is_capturing(stream)) return release(address);
  const std::lock_guard lock(state().mutex);
  const auto found = state().blocks.find(address);   // the graph keeps what is its own
  return found != state().blocks.end() && found->second.of_graph ? kSuccess : kInvalidValue;
}
Result cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  if (is_unsafe()) return kCaptureUnsupported;
  *data = operator new(bytes, kAlignment);
  return kSuccess;
}
Result cuMemHostGetDevicePointer_v2(DeviceAddress* address, void* host, unsigned) {
  *address = reinterpret_cast<DeviceAddress>(host);
  return kSuccess;
}
Result cuMemcpyHtoDAsync_v2(DeviceAddress to, const void* from, std::size_t bytes,
                            StreamHandle stream) {
  return copy(pointer(to), from, bytes, stream);
}
Result cuMemcpyDtoHAsync_v2(void* to, DeviceAddress from, std::size_t bytes, StreamHandle stream) {
  return copy(to, pointer(from), bytes, stream);
}
Result cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes,
                            StreamHandle stream) {
  return copy(pointer(to), pointer(from), bytes, stream);
}
Result cuMemcpyPeerAsync(DeviceAddress to, ContextHandle to_context, DeviceAddress from,
                         ContextHandle from_context, std::size_t bytes, StreamHandle stream) {
  if (to_context == from_context) return kInvalidValue;
  return copy(pointer(to), pointer(from), bytes, stream);
}
Result cuMemsetD8Async(DeviceAddress to, unsigned char value, std::size_t count, StreamHandle s) {
  return fill(to, value, 1, count, s);
}
Result cuMemsetD16Async(DeviceAddress to, unsigned short value, std::size_t count, StreamHandle s) {
  return fill(to, value, 2, count, s);
}
Result cuMemsetD32Async(DeviceAddress to, unsigned value, std::size_t count, StreamHandle s) {
  return fill(to, value, 4, count, s);
}
Result cuMemsetD2D32Async(DeviceAddress to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height, StreamHandle s) {
  return width == 1 ? fill(to, value, pitch, height, s) : kInvalidValue;
}
}
// NOLINTEND(readability-identifier-naming)
