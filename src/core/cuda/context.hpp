// The primary context of each device, which host frameworks in the same process use too.
#pragma once

#include <pumice/core/device.hpp>

#include "core/cuda/driver.hpp"

namespace pumice::cuda {

struct DeviceContext {
  Device device{};
  DeviceId id = 0;
  ContextHandle handle = nullptr;
};

/// Retained by the first call and kept until the process ends. UserError where `device` is no CUDA
/// device of this machine.
const DeviceContext& context_of(Device device);

/// Makes the context of a device current on this thread for as long as it lives.
class ContextGuard {
 public:
  explicit ContextGuard(Device device) : ContextGuard(context_of(device)) {}
  explicit ContextGuard(const DeviceContext& context);
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;
  ~ContextGuard();

 private:
  bool pushed_ = false;   // it was not current already
};

/// What takes memory from the system, as loading a kernel does, is refused to a thread that records
/// a graph, and ends the recording; not while one of these lives. For what the graph has no part
/// in.
class RelaxedCapture {
 public:
  RelaxedCapture();
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;
  ~RelaxedCapture();

 private:
  int mode_ = kCaptureRelaxed;   // of the thread before
};

inline StreamHandle handle_of(StreamView stream) {
  return static_cast<StreamHandle>(stream.native);
}
inline DeviceAddress address_of(const void* data) {
  return reinterpret_cast<DeviceAddress>(data);
}

}   // namespace pumice::cuda
