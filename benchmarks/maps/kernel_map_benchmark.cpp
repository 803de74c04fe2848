// Coordinate sets and kernel maps of a scan at 0.05 m: what a 3x3x3 submanifold layer costs from
// raw int32 coordinates (the work that other engines do for a map), what of that is the set and
// what the map, how it grows up to ten million voxels, and all maps of MinkUNet42.
//
//     PUMICE_DATA=… pumice_kernel_map_benchmark --benchmark_repetitions=5
#include <algorithm>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/maps/build.hpp>

#include "../points/scans.hpp"

namespace pumice::bench {
namespace {

enum class Rows { in_key_order, shuffled };

/// int32 [N, 4] as voxelisation yields them, or in no order at all.
Tensor coordinates_of(std::int64_t tiles, Rows rows) {
  Tensor coordinates = voxels_of(tiled_scan(tiles)).coordinates;
  if (rows == Rows::in_key_order) return coordinates;
  Random random(1);
  auto* row = coordinates.data<std::int32_t>();
  for (std::int64_t i = coordinates.rows() - 1; i > 0; --i) {
    std::swap_ranges(row + 4 * i, row + 4 * i + 4, row + 4 * random.integer(0, i));
  }
  return coordinates;
}

const KernelWindow kThreeCubed = submanifold_window(3, axes(3, 3), axes(3, 1));

/// Runs `body`, which returns a map, on `thread_count` threads.
template <class Body> void measure(benchmark::State& state, int thread_count, Body&& body) {
  set_threads(thread_count);
  KernelMapPtr map = body();   // memory that a process touches first costs more than the work
  for (auto _ : state) {
    map.reset();   // its memory serves the next one
    map = body();
  }
  set_threads(0);
  count(state, "voxels", map->in()->size());
  count(state, "pairs", map->pairs());
}

/// From raw coordinates to pairs: bounds, keys, sort, blocks and their table, search, lists.
void set_and_map(benchmark::State& state, int thread_count, Rows rows) {
  const Tensor coordinates = coordinates_of(state.range(0), rows);
  measure(state, thread_count,
          [&] { return submanifold_map(CoordinateSet::create(coordinates), kThreeCubed); });
}

/// The same where the bounds of the grid are declared.
void declared_set_and_map(benchmark::State& state, int thread_count) {
  const Tensor coordinates = coordinates_of(state.range(0), Rows::in_key_order);
  const CoordinateOptions options{.batch_size = 1,
                                  .bounds = CoordinateBounds{axes(3, -65536), axes(3, 65535)}};
  measure(state, thread_count, [&] {
    return submanifold_map(CoordinateSet::create(coordinates, options), kThreeCubed);
  });
}

/// The coordinate set alone.
void set_alone(benchmark::State& state, int thread_count, Rows rows) {
  const Tensor coordinates = coordinates_of(state.range(0), rows);
  set_threads(thread_count);
  CoordinateSetPtr set = CoordinateSet::create(coordinates);
  for (auto _ : state) {
    set.reset();
    set = CoordinateSet::create(coordinates);
  }
  set_threads(0);
  count(state, "voxels", coordinates.rows());
}

/// The map alone, of a set that is there.
void map_alone(benchmark::State& state, int thread_count, Rows rows) {
  const auto set = CoordinateSet::create(coordinates_of(state.range(0), rows));
  measure(state, thread_count, [&] { return submanifold_map(set, kThreeCubed); });
}

#define PUMICE_SIZES \
  ->Arg(1)->Arg(3)->Arg(11)->Arg(33)->Arg(109)->Unit(benchmark::kMillisecond)->UseRealTime()
#define PUMICE_ONE ->Arg(1)->Unit(benchmark::kMillisecond)->UseRealTime()
BENCHMARK_CAPTURE(set_and_map, key_order_1_thread, 1, Rows::in_key_order) PUMICE_ONE;
BENCHMARK_CAPTURE(set_and_map, key_order_2_threads, 2, Rows::in_key_order) PUMICE_SIZES;
BENCHMARK_CAPTURE(set_and_map, shuffled_2_threads, 2, Rows::shuffled) PUMICE_ONE;
BENCHMARK_CAPTURE(declared_set_and_map, key_order_2_threads, 2) PUMICE_ONE;
BENCHMARK_CAPTURE(set_alone, key_order_2_threads, 2, Rows::in_key_order) PUMICE_SIZES;
BENCHMARK_CAPTURE(set_alone, shuffled_2_threads, 2, Rows::shuffled) PUMICE_SIZES;
BENCHMARK_CAPTURE(map_alone, key_order_1_thread, 1, Rows::in_key_order) PUMICE_ONE;
BENCHMARK_CAPTURE(map_alone, key_order_2_threads, 2, Rows::in_key_order) PUMICE_SIZES;
BENCHMARK_CAPTURE(map_alone, shuffled_2_threads, 2, Rows::shuffled) PUMICE_ONE;

/// From the coordinate set of level 0: four strided levels, five submanifold maps. Inverse
/// convolutions look at the strided maps from the other side, which costs nothing.
void network_maps(benchmark::State& state, StridedOutputs outputs) {
  KernelWindow halving;
  halving.size = halving.stride = axes(3, 2);
  const auto finest = CoordinateSet::create(coordinates_of(1, Rows::in_key_order));
  set_threads(2);
  std::int64_t pairs = 0;
  for (auto _ : state) {
    std::vector<KernelMapPtr> maps{submanifold_map(finest, kThreeCubed)};
    for (int level = 0; level < 4; ++level) {
      maps.push_back(strided_map(maps.back()->out(), halving, outputs));
      maps.push_back(submanifold_map(maps.back()->out(), kThreeCubed));
    }
    pairs = 0;
    for (const KernelMapPtr& map : maps)
      pairs += map->pairs();
  }
  set_threads(0);
  count(state, "voxels", finest->size());
  count(state, "pairs", pairs);
}
BENCHMARK_CAPTURE(network_maps, minkunet42_cell, StridedOutputs::cell)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(network_maps, minkunet42_dilating, StridedOutputs::dilating)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// Strided layers whose outputs are every cell reached, as detectors have them.
void strided(benchmark::State& state, std::int32_t size, std::int32_t padding) {
  KernelWindow window;
  window.size = axes(3, size);
  window.stride = axes(3, 2);
  window.padding = axes(3, padding);
  const auto set = CoordinateSet::create(coordinates_of(1, Rows::in_key_order));
  measure(state, 2, [&] { return strided_map(set, window, StridedOutputs::dilating); });
}
BENCHMARK_CAPTURE(strided, size_3_padding_1, 3, 1)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(strided, size_2, 2, 0)->Unit(benchmark::kMillisecond)->UseRealTime();

}   // namespace
}   // namespace pumice::bench
