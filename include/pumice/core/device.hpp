// Where memory lives and work runs.
#pragma once

#include <string>
#include <string_view>

namespace pumice {

enum class DeviceKind : unsigned char { cpu, cuda };

struct Device {
  DeviceKind kind = DeviceKind::cpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

/// "cpu" or "cuda:0".
std::string to_string(Device device);
/// The device that "cpu", "cuda" (the first one) or "cuda:1" names; UserError for other text. It
/// need not be there: cuda_support() knows.
Device parse_device(std::string_view text);

/// An ordered queue of work on a device, never owned. On the CPU work is done when a call returns;
/// on CUDA `native` is the CUstream, and a null one is that device's default stream.
struct StreamView {
  Device device{};
  void* native = nullptr;
  friend bool operator==(const StreamView&, const StreamView&) = default;
};

}   // namespace pumice
