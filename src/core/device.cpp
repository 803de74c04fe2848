// Names of devices.
#include <pumice/core/device.hpp>

namespace pumice {

std::string to_string(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

}   // namespace pumice
