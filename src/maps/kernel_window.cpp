// Offsets, checks and grid arithmetic of kernel windows.
#include <pumice/maps/kernel_window.hpp>

#include <algorithm>
#include <limits>
#include <set>
#include <sstream>

namespace pumice {
namespace {

constexpr std::int64_t kMostOffsets = std::int64_t{1} << 20;

std::string list(const Axes& values, int dimension) {
  std::ostringstream text;
  for (int axis = 0; axis < dimension; ++axis) {
    text << (axis == 0 ? "" : "x") << values[static_cast<std::size_t>(axis)];
  }
  return text.str();
}

/// Steps to the next cell of the hypercube in lexicographic order; false after the last one.
bool advance(Axes& cell, const KernelWindow& window) {
  for (int axis = window.dimension - 1; axis >= 0; --axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (++cell[at] < window.size[at]) return true;
    cell[at] = 0;
  }
  return false;
}

/// Whether all but one component of `cell` at most are those of the centre.
bool on_cross(const Axes& cell, const KernelWindow& window) {
  int away = 0;
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    away += cell[at] == window.size[at] / 2 ? 0 : 1;
  }
  return away <= 1;
}

/// Cells covered on an axis; where a window lists its offsets there is no such number.
std::int64_t reach(const KernelWindow& window, std::size_t at) {
  return std::int64_t{window.dilation[at]} * (window.size[at] - 1);
}

std::int32_t checked_extent(const char* what, std::size_t axis, std::int64_t extent,
                            const Axes& shape, const KernelWindow& window) {
  PUMICE_EXPECTS(extent >= 1, "spatial_shape[", axis, "] = ", shape[axis], " leaves no output for ",
                 to_string(window), "; use a smaller kernel or more padding");
  PUMICE_EXPECTS(extent <= std::numeric_limits<std::int32_t>::max(), what, " of axis ", axis,
                 " would have ", extent, " cells; the most is 2147483647");
  return static_cast<std::int32_t>(extent);
}

/// Keeps every cell a window can lead to well within 64 bits.
void validate_reach(const KernelWindow& window, std::size_t axis, std::int64_t offset) {
  const std::int64_t reach = offset * window.dilation[axis];
  PUMICE_EXPECTS(reach >= std::numeric_limits<std::int32_t>::min() &&
                     reach <= std::numeric_limits<std::int32_t>::max(),
                 "dilation[", axis, "] = ", window.dilation[axis], ": offset ", offset,
                 " would lead ", reach, " cells away; the most is 2147483647");
}

void validate_size(const KernelWindow& window) {
  std::int64_t volume = 1;
  for (int axis = 0; axis < window.dimension; ++axis) {
    const std::int32_t size = window.size[static_cast<std::size_t>(axis)];
    PUMICE_EXPECTS(size >= 1, "kernel size[", axis, "] = ", size, ": must be at least 1");
    PUMICE_EXPECTS(window.shape != KernelShape::hypercross || size % 2 == 1, "kernel size[", axis,
                   "] = ", size, ": a hypercross has a centre, so its sizes are odd");
    volume = window.shape == KernelShape::hypercross ? volume + size - 1 : volume * size;
    PUMICE_EXPECTS(volume <= kMostOffsets, "kernel size ", list(window.size, window.dimension),
                   " has more than ", kMostOffsets, " offsets; use a smaller one, or dilation");
    validate_reach(window, static_cast<std::size_t>(axis), size - 1);
  }
}

void validate_custom(const KernelWindow& window) {
  const auto count = static_cast<std::int64_t>(window.custom_offsets.size());
  PUMICE_EXPECTS(count >= 1, "custom_offsets is empty; list at least one offset");
  PUMICE_EXPECTS(count <= kMostOffsets, "custom_offsets has ", count, " entries; the most is ",
                 kMostOffsets);
  std::set<std::vector<std::int32_t>> seen;
  for (const Axes& offset : window.custom_offsets) {
    PUMICE_EXPECTS(seen.emplace(offset.begin(), offset.begin() + window.dimension).second,
                   "custom_offsets lists (", list(offset, window.dimension),
                   ") twice; each offset has one weight");
    for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
      validate_reach(window, at, offset[at]);
    }
  }
}

}   // namespace

std::vector<Axes> KernelWindow::offsets() const {
  if (shape == KernelShape::custom) return custom_offsets;
  std::vector<Axes> result;
  result.reserve(static_cast<std::size_t>(volume()));
  Axes cell{};
  do {
    if (shape == KernelShape::hypercube || on_cross(cell, *this)) result.push_back(cell);
  } while (advance(cell, *this));
  return result;
}

std::int64_t KernelWindow::volume() const {
  if (shape == KernelShape::custom) return static_cast<std::int64_t>(custom_offsets.size());
  std::int64_t volume = 1;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    volume = shape == KernelShape::hypercross ? volume + size[at] - 1 : volume * size[at];
  }
  return volume;
}

bool KernelWindow::symmetric() const {
  const std::vector<Axes> all = offsets();
  if (all.size() % 2 == 0) return false;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    if (stride[at] != 1) return false;
    for (std::size_t k = 0; k <= all.size() / 2; ++k) {
      const std::int64_t sum = std::int64_t{all[k][at]} + all[all.size() - 1 - k][at];
      if (sum * dilation[at] != 2 * std::int64_t{padding[at]}) return false;
    }
  }
  return true;
}

KernelWindow submanifold_window(int dimension, const Axes& size, const Axes& dilation) {
  KernelWindow window;
  window.dimension = dimension;
  window.size = size;
  window.dilation = dilation;
  validate(window);
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    if (size[at] % 2 == 0) continue;
    window.padding[at] = (size[at] - 1) / 2 * dilation[at];
  }
  return window;
}

void validate(const KernelWindow& window) {
  PUMICE_EXPECTS(window.dimension >= 1 && window.dimension <= kMaxDimension,
                 "kernel dimension = ", window.dimension, ": must be 1 to ", kMaxDimension);
  for (int axis = 0; axis < window.dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(window.stride[at] >= 1, "stride[", axis, "] = ", window.stride[at],
                   ": must be at least 1");
    PUMICE_EXPECTS(window.dilation[at] >= 1, "dilation[", axis, "] = ", window.dilation[at],
                   ": must be at least 1");
    PUMICE_EXPECTS(window.output_padding[at] >= 0, "output_padding[", axis,
                   "] = ", window.output_padding[at], ": must be at least 0");
  }
  if (window.shape == KernelShape::custom) {
    validate_custom(window);
  } else {
    validate_size(window);
  }
}

Axes strided_shape(const Axes& shape, const KernelWindow& window) {
  Axes result{};
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    std::int64_t last = std::int64_t{shape[at]} - 1;
    if (window.shape != KernelShape::custom) {
      last += 2 * std::int64_t{window.padding[at]} - reach(window, at);
    }
    const std::int64_t extent = last < 0 ? 0 : last / window.stride[at] + 1;
    result[at] = checked_extent("the output", at, extent, shape, window);
  }
  return result;
}

Axes transposed_shape(const Axes& shape, const KernelWindow& window) {
  Axes result{};
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    std::int64_t extent = std::int64_t{shape[at]} * window.stride[at];
    if (window.shape != KernelShape::custom) {
      extent += 1 - window.stride[at] - 2 * std::int64_t{window.padding[at]} + reach(window, at);
    }
    extent += window.output_padding[at];
    result[at] = checked_extent("the output", at, extent, shape, window);
  }
  return result;
}

std::string to_string(const KernelWindow& window) {
  std::ostringstream text;
  switch (window.shape) {
    case KernelShape::hypercube: text << "kernel " << list(window.size, window.dimension); break;
    case KernelShape::hypercross: text << "cross " << list(window.size, window.dimension); break;
    case KernelShape::custom: text << "kernel of " << window.volume() << " listed offsets"; break;
  }
  text << " stride " << list(window.stride, window.dimension) << " padding "
       << list(window.padding, window.dimension) << " dilation "
       << list(window.dilation, window.dimension);
  if (window.output_padding != Axes{}) {
    text << " output padding " << list(window.output_padding, window.dimension);
  }
  return text.str();
}

}   // namespace pumice
