// Windows of layers: made comparable, and put into words.
#pragma once

#include <sstream>
#include <string>

#include <pumice/maps/kernel_window.hpp>

namespace pumice {

/// Axes beyond the dimension say nothing; setting them to one value makes windows that mean the
/// same compare equal, so that layers written by different hands share their maps.
inline KernelWindow normalized(KernelWindow window) {
  for (std::size_t axis = 0; axis < window.size.size(); ++axis) {
    if (axis < static_cast<std::size_t>(window.dimension)) continue;
    window.size[axis] = window.stride[axis] = window.dilation[axis] = 1;
    window.padding[axis] = 0;
    for (Axes& offset : window.custom_offsets)
      offset[axis] = 0;
  }
  return window;
}

inline bool is_strided(const KernelWindow& window) {
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(window.dimension); ++axis) {
    if (window.stride[axis] > 1) return true;
  }
  return false;
}

/// "3x3x3", "2x2x2 /2x2x2", "19 offsets"
inline std::string describe(const KernelWindow& window) {
  std::ostringstream text;
  const auto list = [&](const Axes& values) {
    for (std::size_t axis = 0; axis < static_cast<std::size_t>(window.dimension); ++axis) {
      text << (axis > 0 ? "x" : "") << values[axis];
    }
  };
  if (window.shape == KernelShape::custom)
    text << window.volume() << " offsets";
  else
    list(window.size);
  if (window.shape == KernelShape::hypercross) text << " cross";
  if (is_strided(window)) {
    text << " /";
    list(window.stride);
  }
  return text.str();
}

}   // namespace pumice
