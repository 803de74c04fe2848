// The scans that benchmarks of points, coordinates and maps share: frame 0 of SemanticKITTI where
// the environment variable PUMICE_DATA leads to it, a simulated sweep elsewhere.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <string>

#include <benchmark/benchmark.h>

#include <pumice/core/parallel.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::bench {

/// A scan and the features to reduce.
struct Scan {
  PointCloud cloud;
  Tensor features;
};

inline const Scan& one_scan() {
  static const Scan scan = [] {
    PointCloud cloud;
    const char* data = std::getenv("PUMICE_DATA");
    const std::filesystem::path frame =
        std::filesystem::path(data == nullptr ? "" : data) / "lidar/semantickitti/seq00_000000.bin";
    const bool recorded = data != nullptr && std::filesystem::exists(frame);
    cloud = recorded ? read_points(frame.string()) : simulate({});
    benchmark::AddCustomContext("scan", recorded ? frame.string() : "simulated sweep");
    Tensor features = point_features(cloud);
    return Scan{std::move(cloud), std::move(features)};
  }();
  return scan;
}

/// `tiles` copies of the scan on a square grid 200 m apart, which is further than it reaches:
/// voxels and pairs grow exactly as tiles do, so that times tell how the work grows.
inline Scan tiled_scan(std::int64_t tiles) {
  const Scan& one = one_scan();
  const std::int64_t points = one.cloud.size();
  const std::int64_t channels = one.features.extent(1);
  const auto side = static_cast<std::int64_t>(std::ceil(std::sqrt(static_cast<double>(tiles))));
  Scan all;
  all.cloud.positions = Tensor({tiles * points, 3}, DType::f32);
  all.features = Tensor({tiles * points, channels}, DType::f32);
  const auto* from = one.cloud.positions.data<float>();
  parallel_for(tiles, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t tile = begin; tile < end; ++tile) {
      const auto x = 200.0f * static_cast<float>(tile % side - side / 2);
      const auto y = 200.0f * static_cast<float>(tile / side - side / 2);
      auto* to = all.cloud.positions.data<float>() + 3 * tile * points;
      for (std::int64_t i = 0; i < 3 * points; i += 3) {
        to[i] = from[i] + x;
        to[i + 1] = from[i + 1] + y;
        to[i + 2] = from[i + 2];
      }
      const auto features = one.features.span<float>();
      std::copy(features.begin(), features.end(),
                all.features.data<float>() + tile * points * channels);
    }
  });
  return all;
}

inline Voxels voxels_of(const Scan& scan) {
  return voxelize(scan.cloud, scan.features, {.size = {0.05f, 0.05f, 0.05f}, .range = {}});
}

/// A count, and the wall time each of them took.
inline void count(benchmark::State& state, const std::string& name, std::int64_t number) {
  state.counters[name] = static_cast<double>(number);
  state.counters["time/" + name] = benchmark::Counter(
      static_cast<double>(number),
      benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

}   // namespace pumice::bench
