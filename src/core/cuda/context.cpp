// One primary context a device, retained once.
#include "core/cuda/context.hpp"

#include <mutex>
#include <vector>

#include <pumice/core/error.hpp>

namespace pumice::cuda {
namespace {

struct Slot {
  std::once_flag once;
  DeviceContext context;
};

std::vector<Slot>& slots() {
  static auto& all = *new std::vector<Slot>(static_cast<std::size_t>(driver_state().devices));
  return all;   // never destroyed: buffers of static storage may outlive every other static
}

}   // namespace

const DeviceContext& context_of(Device device) {
  PUMICE_ENSURES(device.kind == DeviceKind::cuda, to_string(device), " has no CUDA context");
  const Driver& functions = driver();
  PUMICE_EXPECTS(device.index >= 0 && device.index < driver_state().devices, to_string(device),
                 " is not there: this process sees ", driver_state().devices, " CUDA device",
                 driver_state().devices == 1 ? "" : "s");
  Slot& slot = slots()[static_cast<std::size_t>(device.index)];
  std::call_once(slot.once, [&] {
    DeviceContext context{device};
    check(functions.cuDeviceGet(&context.id, device.index), "cuDeviceGet");
    int has_pools = 0;
    check(functions.cuDeviceGetAttribute(&has_pools, kMemoryPoolsSupported, context.id),
          "cuDeviceGetAttribute");
    PUMICE_EXPECTS(has_pools != 0, to_string(device), " has no stream-ordered memory pools");
    check(functions.cuDevicePrimaryCtxRetain(&context.handle, context.id),
          "cuDevicePrimaryCtxRetain");
    slot.context = context;
  });
  return slot.context;
}

ContextGuard::ContextGuard(const DeviceContext& context) {
  ContextHandle current = nullptr;
  PUMICE_CUDA(cuCtxGetCurrent(&current));
  if (current == context.handle) return;
  PUMICE_CUDA(cuCtxPushCurrent_v2(context.handle));
  pushed_ = true;
}

ContextGuard::~ContextGuard() {
  ContextHandle popped = nullptr;
  if (pushed_) driver().cuCtxPopCurrent_v2(&popped);
}

RelaxedCapture::RelaxedCapture() {
  PUMICE_CUDA(cuThreadExchangeStreamCaptureMode(&mode_));
}

RelaxedCapture::~RelaxedCapture() {
  driver().cuThreadExchangeStreamCaptureMode(&mode_);
}

}   // namespace pumice::cuda
