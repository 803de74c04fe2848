// Coarser cells: a shift of the keys where the factor is a power of two, new keys elsewhere.
#include "coords/cpu/coarsen.hpp"

#include <algorithm>
#include <limits>

#include <pumice/shared/floor_division.h>
#include <pumice/coords/set_operations.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/radix_sort.hpp>

#include "coords/cpu/compact.hpp"
#include "coords/cpu/coordinate_set_builder.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cpu/key_runs.hpp"
#include "coords/cuda/derived_sets.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

/// The keys whose cells lie in [0, shape).
Buffer<std::uint64_t> clip(Buffer<std::uint64_t> keys, const KeyLayout& layout, const Axes& shape) {
  const auto* old_keys = keys.data();
  const Compaction inside(keys.size(), [&](std::int64_t i) {
    for (int axis = 0; axis < layout.dimension; ++axis) {
      const std::int64_t cell = decode_axis(layout, old_keys[i], axis);
      if (cell < 0 || cell >= shape[static_cast<std::size_t>(axis)]) return false;
    }
    return true;
  });
  if (inside.kept() == keys.size()) return keys;
  Buffer<std::uint64_t> kept(inside.kept());
  inside.for_each([&](std::int64_t i, std::int64_t position) { kept[position] = old_keys[i]; });
  return kept;
}

bool all_even(const Axes& factor, int dimension) {
  return std::all_of(factor.begin(), factor.begin() + dimension,
                     [](std::int32_t f) { return f % 2 == 0; });
}

bool all_one(const Axes& factor, int dimension) {
  return std::all_of(factor.begin(), factor.begin() + dimension,
                     [](std::int32_t f) { return f == 1; });
}

/// Keys of the cells that `keys` fall into, in a layout of their own; neither sorted nor distinct.
KeyList divide_keys(std::span<const std::uint64_t> keys, const KeyLayout& layout,
                    std::int32_t batch_size, const Bounds& bounds, const Axes& factor) {
  Bounds coarse;
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    coarse.low[at] = floor_divide(bounds.low[at], factor[at]);
    coarse.high[at] = floor_divide(bounds.high[at], factor[at]);
  }
  KeyList list{roomy_layout(layout.dimension, coarse, batch_size), batch_size,
               Buffer<std::uint64_t>(static_cast<std::int64_t>(keys.size()))};
  parallel_for(list.keys.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::uint64_t key = keys[static_cast<std::size_t>(i)];
      AxisBounds cell{};
      for (int axis = 0; axis < layout.dimension; ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        cell[at] = floor_divide(decode_axis(layout, key, axis), factor[at]);
      }
      list.keys[i] = encode_key(list.layout, decode_batch(layout, key), cell.data());
    }
  });
  return list;
}

}   // namespace

CoordinateOptions coarser_options(const CoordinateSet& set, const Axes& factor) {
  CoordinateOptions options = set.options();
  options.bounds.reset();
  for (int axis = 0; axis < set.dimension(); ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    PUMICE_EXPECTS(factor[at] >= 1, "factor[", axis, "] = ", factor[at],
                   ": a coarse cell holds at least 1 cell an axis");
    const std::int64_t stride = std::int64_t{options.stride[at]} * factor[at];
    PUMICE_EXPECTS(stride <= std::numeric_limits<std::int32_t>::max(), "factor[", axis,
                   "] = ", factor[at], " makes a stride of ", stride,
                   " cells; the largest is 2147483647");
    options.stride[at] = static_cast<std::int32_t>(stride);
  }
  return options;
}

CoordinateSetPtr coarsen_to(const CoordinateSet& set, const Axes& factor,
                            const CoordinateOptions& options) {
  const int dimension = set.dimension();
  KeyLayout layout = set.layout();
  Axes left = factor;
  int shift = 0;
  while (all_even(left, dimension) && can_halve(layout)) {
    layout = halved(layout);
    shift += dimension;
    for (int axis = 0; axis < dimension; ++axis)
      left[static_cast<std::size_t>(axis)] /= 2;
  }
  Buffer<std::uint64_t> keys = distinct_keys(set.sorted_keys(), shift);
  if (!all_one(left, dimension)) {
    Bounds bounds = bounds_of(set.coordinates());
    for (int axis = 0; axis < dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      bounds.low[at] >>= shift / dimension;
      bounds.high[at] >>= shift / dimension;
    }
    KeyList list = divide_keys(keys.span(), layout, set.batch_size(), bounds, left);
    Buffer<std::int32_t> order = identity_order(list.keys.size());
    radix_sort_pairs(list.keys.span(), order.span(), key_bits(list.layout));
    keys = distinct_keys(list.keys.span(), 0);
    layout = list.layout;
  }
  if (options.spatial_shape) keys = clip(std::move(keys), layout, *options.spatial_shape);
  return CoordinateSetBuilder::build(std::move(keys), {}, {}, layout, set.batch_size(), options);
}

CoordinateSetPtr coarsen(const CoordinateSet& set, const Axes& factor) {
  CoordinateOptions options = coarser_options(set, factor);
  if (options.spatial_shape) {
    for (int axis = 0; axis < set.dimension(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      auto& extent = (*options.spatial_shape)[at];
      extent = static_cast<std::int32_t>(ceil_divide(extent, factor[at]));
    }
  }
  return set.device().kind == DeviceKind::cuda ? cuda::coarsen(set, factor, options)
                                               : coarsen_to(set, factor, options);
}

}   // namespace pumice
