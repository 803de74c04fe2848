// Random kernel map problems, in the library's terms and in those of the reference.
#pragma once

#include <algorithm>
#include <set>

#include <pumice/core/random.hpp>
#include <pumice/maps/build.hpp>

#include "reference/brute_force_map.hpp"

namespace pumice::test {

inline brute_force::Cells cells_of(const CoordinateSet& set) {
  const auto columns = static_cast<std::size_t>(set.dimension()) + 1;
  const auto values = set.coordinates().span<std::int32_t>();
  brute_force::Cells cells;
  for (std::size_t at = 0; at < values.size(); at += columns) {
    cells.emplace_back(values.begin() + static_cast<std::ptrdiff_t>(at),
                       values.begin() + static_cast<std::ptrdiff_t>(at + columns));
  }
  return cells;
}

inline CoordinateSetPtr make_set(const brute_force::Cells& cells, int dimension,
                                 const CoordinateOptions& options = {}) {
  std::vector<std::int32_t> values;
  for (const auto& cell : cells) {
    for (const std::int64_t value : cell)
      values.push_back(static_cast<std::int32_t>(value));
  }
  return CoordinateSet::create(
      ConstTensorView(values.data(), DType::i32,
                      Shape{static_cast<std::int64_t>(cells.size()), 1 + dimension}),
      options);
}

/// How sites are strewn: `size` distinct cells at most, in a box at `origin`.
struct Scatter {
  int dimension = 3;
  std::int64_t size = 0;
  std::int64_t batches = 1;
  brute_force::Extents origin{};   // per axis
  brute_force::Extents extent{};   // per axis
  bool in_key_order = false;
};

inline brute_force::Cells strew(const Scatter& scatter, Random& random) {
  std::set<brute_force::Cell> distinct;
  for (std::int64_t i = 0; i < scatter.size; ++i) {
    brute_force::Cell cell{random.integer(0, scatter.batches - 1)};
    for (std::size_t axis = 0; axis < scatter.extent.size(); ++axis) {
      cell.push_back(scatter.origin[axis] + random.integer(0, scatter.extent[axis] - 1));
    }
    distinct.insert(cell);
  }
  brute_force::Cells cells(distinct.begin(), distinct.end());
  for (std::size_t i = cells.size(); i > 1; --i) {
    const auto other = random.integer(0, static_cast<std::int64_t>(i) - 1);
    std::swap(cells[i - 1], cells[static_cast<std::size_t>(other)]);
  }
  if (!scatter.in_key_order || cells.empty()) return cells;
  const auto set = make_set(cells, scatter.dimension);
  brute_force::Cells sorted;
  for (std::int64_t rank = 0; rank < set->size(); ++rank) {
    const auto row = set->in_key_order() ? rank : std::int64_t{set->index().order[rank]};
    sorted.push_back(cells[static_cast<std::size_t>(row)]);
  }
  return sorted;
}

/// Sizes that matter and a few in between; negative, distant and non-negative origins.
inline Scatter random_scatter(int dimension, bool non_negative, Random& random) {
  constexpr std::int64_t kSizes[] = {0, 1, 2, 31, 33, 64, 90, 150};
  constexpr std::int64_t kOrigins[] = {0, -3, -40, 1000, -2147480000, 2147480000};
  Scatter scatter{.dimension = dimension,
                  .size = kSizes[random.integer(0, 7)],
                  .batches = random.integer(1, 3),
                  .in_key_order = random.integer(0, 2) == 0};
  const std::int64_t crowding = random.integer(1, 4);
  for (int axis = 0; axis < dimension; ++axis) {
    scatter.origin.push_back(non_negative
                                 ? random.integer(0, 2)
                                 : kOrigins[random.integer(0, random.integer(0, 9) == 0 ? 5 : 3)]);
    const std::int64_t longest = dimension == 1 ? 100 : dimension == 2 ? 14 : 8;
    scatter.extent.push_back(random.integer(1, longest * crowding / 2 + 1));
  }
  // Four axes that start and end far apart would need over 63 bits.
  if (dimension == 4) scatter.origin = brute_force::Extents(4, scatter.origin[0]);
  return scatter;
}

inline KernelWindow random_window(int dimension, std::int32_t most_stride, Random& random) {
  const auto pick = [&](std::int32_t low, std::int32_t high) {
    return static_cast<std::int32_t>(random.integer(low, high));
  };
  KernelWindow window;
  window.dimension = dimension;
  window.shape = static_cast<KernelShape>(pick(0, 2));
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
    window.size[at] = window.shape == KernelShape::hypercross ? 1 + 2 * pick(0, 2)
                                                              : pick(1, dimension == 4 ? 3 : 5);
    window.stride[at] = pick(1, most_stride);
    window.padding[at] = pick(0, 3);
    window.dilation[at] = pick(1, 3);
  }
  if (window.shape == KernelShape::custom) {
    std::set<Axes> distinct;
    const std::int32_t count = pick(1, 12);
    for (std::int32_t i = 0; i < count; ++i) {
      Axes offset{};
      for (std::size_t at = 0; at < static_cast<std::size_t>(dimension); ++at) {
        offset[at] = pick(-3, 5);
      }
      distinct.insert(offset);
    }
    window.custom_offsets.assign(distinct.begin(), distinct.end());
    for (std::size_t i = window.custom_offsets.size(); i > 1; --i) {
      std::swap(window.custom_offsets[i - 1],
                window.custom_offsets[static_cast<std::size_t>(
                    random.integer(0, static_cast<std::int64_t>(i) - 1))]);
    }
  }
  return window;
}

inline brute_force::Extents extents_of(const Axes& values, int dimension) {
  return {values.begin(), values.begin() + dimension};
}

inline brute_force::Kernel kernel_of(const KernelWindow& window) {
  brute_force::Kernel kernel{{},
                             extents_of(window.stride, window.dimension),
                             extents_of(window.padding, window.dimension),
                             extents_of(window.dilation, window.dimension)};
  if (window.shape == KernelShape::custom) {
    for (const Axes& offset : window.custom_offsets) {
      kernel.offsets.push_back(extents_of(offset, window.dimension));
    }
  } else {
    kernel.offsets = brute_force::box_offsets(extents_of(window.size, window.dimension),
                                              window.shape == KernelShape::hypercross);
  }
  return kernel;
}

}   // namespace pumice::test
