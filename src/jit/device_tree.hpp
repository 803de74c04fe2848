// The headers of device/, embedded in the library when it is built: a kernel compiles on a machine
// that has no copy of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace pumice::jit {

struct DeviceHeader {
  std::string name;   // as it is included: "pumice/shared/types.h"
  std::string text;
};

/// All of them by name, but for those named *_host.h, which are for the host compiler.
const std::vector<DeviceHeader>& device_tree();

/// The pieces that the generated file keeps a text in.
template <std::size_t N> std::string join(const std::string_view (&pieces)[N]) {
  std::string text;
  for (const std::string_view piece : pieces)
    text += piece;
  return text;
}

}   // namespace pumice::jit
