// Voxelisation of a scan, by threads and by number of voxels up to ten million. Reported per point,
// with both maps between points and voxels and the mean of four features.
//
//     PUMICE_DATA=… pumice_voxelize_benchmark --benchmark_repetitions=5
#include "../points/scans.hpp"

namespace pumice::bench {
namespace {

/// All copies of a scan at once. The argument is a number of tiles.
void voxelize_tiles(benchmark::State& state, int thread_count) {
  const Scan scan = tiled_scan(state.range(0));
  set_threads(thread_count);
  std::int64_t voxels = voxels_of(scan).size();   // first touches the memory, which costs more
  for (auto _ : state) {
    const Voxels result = voxels_of(scan);
    voxels = result.size();
    benchmark::DoNotOptimize(result.features.raw());
  }
  set_threads(0);
  count(state, "points", scan.cloud.size());
  count(state, "voxels", voxels);
}
BENCHMARK_CAPTURE(voxelize_tiles, one_thread, 1)
    ->Arg(1)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(voxelize_tiles, two_threads, 2)
    ->Arg(1)
    ->Arg(3)
    ->Arg(11)
    ->Arg(33)
    ->Arg(109)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

/// With the crop that detectors use, which leaves out about half of a scan.
void voxelize_in_range(benchmark::State& state, Reduction reduction) {
  const Scan& scan = one_scan();
  set_threads(2);
  const VoxelOptions options{.size = {0.05f, 0.05f, 0.05f},
                             .range = {{0.0f, -40.0f, -3.0f, 70.4f, 40.0f, 1.0f}},
                             .reduction = reduction};
  std::int64_t voxels = voxelize(scan.cloud, scan.features, options).size();
  for (auto _ : state)
    voxels = voxelize(scan.cloud, scan.features, options).size();
  set_threads(0);
  count(state, "points", scan.cloud.size());
  count(state, "voxels", voxels);
}
BENCHMARK_CAPTURE(voxelize_in_range, first, Reduction::first)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();
BENCHMARK_CAPTURE(voxelize_in_range, mean, Reduction::mean)
    ->Unit(benchmark::kMillisecond)
    ->UseRealTime();

}   // namespace
}   // namespace pumice::bench
