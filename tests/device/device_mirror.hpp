// Making device sets of the coordinates of a CPU set.
#pragma once

#include <algorithm>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>

#include "coords/cuda/create_sets.hpp"
#include "support/kernel_engines.hpp"

namespace pumice::test {

/// The layout and bounds of `set`, and room for its rows at each of `levels` levels.
inline cuda::CreateOptions options_of(const CoordinateSet& set, std::size_t levels,
                                      cuda::Repeats repeats, std::int64_t spare = 0) {
  cuda::CreateOptions options{.layout = set.layout(), .repeats = repeats};
  options.columns.high[0] = std::max(set.batch_size() - 1, 0);
  const auto values = set.coordinates().span<std::int32_t>();
  const auto columns = static_cast<std::size_t>(set.dimension()) + 1;
  for (std::size_t at = 0; at < values.size(); ++at) {
    const std::size_t column = at % columns;
    if (column == 0) continue;
    auto& low = options.columns.low[column];
    auto& high = options.columns.high[column];
    low = at < columns ? values[at] : std::min(low, values[at]);
    high = at < columns ? values[at] : std::max(high, values[at]);
  }
  options.capacities.assign(levels, cuda::capacity_for_rows(set.size() + spare));
  return options;
}

/// Coordinates where kernels can read them, with room for `spare` more rows.
struct DeviceRows {
  DeviceRows(const TestRunner& runner, ConstTensorView coordinates, std::int64_t spare)
      : capacity(coordinates.rows() + spare),
        values(runner.make<std::int32_t>(capacity * coordinates.extent(1))),
        count(runner.count(coordinates.rows())) {
    std::fill_n(values.data(), values.size(), 7);
    std::copy_n(coordinates.data<std::int32_t>(), coordinates.elements(), values.data());
  }
  cuda::DeviceCoordinates get() const { return {values.data(), {count.data(), capacity}}; }

  std::int64_t capacity;
  Buffer<std::int32_t> values;
  Buffer<std::int64_t> count;
};

/// Sets of `coordinates`, with the layout and bounds of `like`.
inline cuda::CreatedSets create_on_device(TestRunner& runner, const Tensor& coordinates,
                                          const CoordinateSet& like, std::size_t levels,
                                          cuda::Repeats repeats, std::int64_t spare) {
  const DeviceRows rows(runner, coordinates, spare);
  return cuda::create_sets(runner, rows.get(),
                           options_of(like, levels, repeats, rows.capacity - like.size()));
}

inline cuda::CreatedSets create_on_device(TestRunner& runner, const CoordinateSet& set,
                                          std::size_t levels, cuda::Repeats repeats,
                                          std::int64_t spare) {
  return create_on_device(runner, set.coordinates(), set, levels, repeats, spare);
}

/// The device's copy of a CPU set, row for row.
struct Mirror {
  Mirror(TestRunner& runner, const CoordinateSetPtr& cpu, std::int64_t spare = 3)
      : set(cpu), created(create_on_device(runner, *cpu, 1, cuda::Repeats::refuse, spare)) {}
  CoordinateSetRef ref() const { return created.sets[0].ref(); }

  CoordinateSetPtr set;
  cuda::CreatedSets created;
};

}   // namespace pumice::test
