// Names of devices.
#include <pumice/core/device.hpp>

#include <charconv>
#include <system_error>

#include <pumice/core/error.hpp>

namespace pumice {

std::string to_string(Device device) {
  return device.kind == DeviceKind::cpu ? "cpu" : "cuda:" + std::to_string(device.index);
}

Device parse_device(std::string_view text) {
  if (text == "cpu") return {};
  if (text == "cuda") return {DeviceKind::cuda, 0};
  constexpr std::string_view kPrefix = "cuda:";
  Device device{DeviceKind::cuda, -1};
  if (text.starts_with(kPrefix)) {
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data() + kPrefix.size(), end, device.index);
    if (error != std::errc{} || stop != end) device.index = -1;
  }
  PUMICE_EXPECTS(device.index >= 0, "device \"", text, "\": it is cpu, cuda or cuda:<number>");
  return device;
}

}   // namespace pumice
