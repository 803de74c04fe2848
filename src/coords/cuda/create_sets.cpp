// Encode, sort, cut into levels.
#include "coords/cuda/create_sets.hpp"

#include <algorithm>
#include <utility>

#include <pumice/coords/encode_arguments.h>
#include <pumice/core/error.hpp>

#include "coords/cuda/pyramid.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "coords/cuda/sources.hpp"
#include "core/cuda/status.hpp"

namespace pumice::cuda {
namespace {

void encode(jit::KernelRunner& runner, const DeviceCoordinates& coordinates,
            const CreateOptions& options, RadixSort<std::uint64_t>& sort, RowTrouble* outside) {
  EncodeArguments arguments{.rows = coordinates.rows,
                            .coordinates = coordinates.data,
                            .layout = options.layout,
                            .keys = sort.keys(),
                            .totals = sort.counted_by_caller(),
                            .outside = outside};
  std::copy(options.columns.low.begin(), options.columns.low.end(), arguments.low);
  std::copy(options.columns.high.begin(), options.columns.high.end(), arguments.high);
  runner.run(coords_kernel("encode_coordinates"),
             {.blocks = (coordinates.rows.capacity + kEncodeRows - 1) / kEncodeRows,
              .threads = kEncodeThreads},
             arguments);
}

}   // namespace

CreatedSets create_sets(jit::KernelRunner& runner, const DeviceCoordinates& coordinates,
                        const CreateOptions& options) {
  const bool merges = options.repeats == Repeats::merge;
  FillList fill;
  Pyramid pyramid(runner, options.layout, coordinates.rows.capacity, 0, options.capacities, !merges,
                  options.name, fill);
  RadixSort<std::uint64_t> sort(runner, {coordinates.rows.capacity, key_bits(options.layout)},
                                fill);
  auto troubles = fill.zeros<RowTrouble>(runner, 2);
  fill.add(options.also_zeroed.data(), std::ssize(options.also_zeroed), 0);
  CreatedSets created;
  if (merges) {
    created.row_of = runner.make<std::int32_t>(coordinates.rows.capacity);
    created.first = runner.make<std::int32_t>(options.capacities.front().rows);
  }
  fill.run(runner);
  encode(runner, coordinates, options, sort, troubles.data());
  sort.run(runner, coordinates.rows);
  pyramid.make(runner, {.count = coordinates.rows,
                        .keys = sort.sorted_keys(),
                        .values = sort.sorted_values(),
                        .order = merges ? created.first.data() : pyramid.base().order(),
                        .row_of = created.row_of.data(),
                        .outside = troubles.data(),
                        .repeated = merges ? nullptr : troubles.data() + 1,
                        .site = status_site(options.name)});
  created.sets = pyramid.take();
  return created;
}

std::vector<DeviceSet> halve_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                                 int first_halving, std::span<const SetCapacity> capacities,
                                 const std::string& name) {
  FillList fill;
  Pyramid pyramid(runner, set.layout, set.rows.capacity, first_halving, capacities, false, name,
                  fill);
  fill.run(runner);
  pyramid.make(runner, {.count = set.rows, .keys = set.keys, .site = status_site(name)});
  return pyramid.take();
}

}   // namespace pumice::cuda
