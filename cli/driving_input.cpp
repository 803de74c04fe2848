// Scans into columns, voxels, and at most so many of them.
#include "driving_input.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

#include "core/environment.hpp"
#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

constexpr float kTinyReach = 8;   // metres around the sensor
constexpr std::int64_t kTinyVoxels = 300;

struct Scan {
  PointCloud cloud;
  std::string source;
};

/// Below PUMICE_DATA; empty where there is none for the workload.
std::filesystem::path recorded(const DrivingWorkload& work) {
  const std::filesystem::path lidar = std::filesystem::path(environment::data()) / "lidar";
  std::filesystem::path scan;
  if (work.dataset == "semantickitti") scan = lidar / "semantickitti/seq00_000000.bin";
  if (work.dataset == "nuscenes" && work.sweeps == 10)
    scan = lidar / "nuscenes/ten_sweeps_f16x5.bin";
  std::error_code absent;
  return !environment::data().empty() && std::filesystem::exists(scan, absent) ? scan : "";
}

/// Waymo's positions count from the ground, and a simulated sensor's from the sensor.
void count_from_the_ground(PointCloud& cloud, double height) {
  for (std::int64_t row = 0; row < cloud.size(); ++row)
    cloud.positions.data<float>()[3 * row + 2] += static_cast<float>(height);
}

Scan scan_of(const DrivingWorkload& work, const std::string& given, std::uint64_t seed) {
  const std::filesystem::path path = given.empty() ? recorded(work) : std::filesystem::path(given);
  if (!path.empty()) return {read_points(path), printable_path(path.filename())};
  const SensorModel sensor = SensorModel::named(work.sensor);
  Scan scan{simulate({.seed = seed, .sensor = sensor, .sweeps = work.sweeps}),
            fmt::format("simulated {}, {}", work.sensor, counted(work.sweeps, "sweep"))};
  if (work.dataset == "waymo") count_from_the_ground(scan.cloud, sensor.height_m);
  return scan;
}

/// [P, channels] of x, y, z, intensity, ring, time.
Tensor columns_of(const PointCloud& cloud, std::int64_t channels) {
  const Tensor four = point_features(cloud);
  Tensor columns = Tensor::zeros({cloud.size(), channels}, DType::f32);
  float* to = columns.data<float>();
  for (std::int64_t row = 0; row < cloud.size(); ++row, to += channels) {
    std::copy_n(four.data<float>() + 4 * row, 4, to);
    if (channels > 4 && cloud.ring.defined())
      to[4] = static_cast<float>(cloud.ring.data<std::int32_t>()[row]);
    if (channels > 5 && cloud.time.defined()) to[5] = cloud.time.data<float>()[row];
  }
  return columns;
}

/// The points within `reach` of the sensor, along x and y.
PointCloud near_points(const PointCloud& cloud, float reach) {
  std::vector<std::int64_t> rows;
  for (std::int64_t row = 0; row < cloud.size(); ++row) {
    const float* p = cloud.positions.data<float>() + 3 * row;
    if (std::hypot(p[0], p[1]) < reach) rows.push_back(row);
  }
  const auto taken = [&]<class T>(const Tensor& column, T) {
    if (!column.defined()) return Tensor();
    const std::int64_t width = column.shape().rank() == 1 ? 1 : column.extent(1);
    const auto count = static_cast<std::int64_t>(rows.size());
    Tensor result(width == 1 ? Shape{count} : Shape{count, width}, column.dtype());
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = rows[static_cast<std::size_t>(i)];
      std::copy_n(column.data<T>() + width * row, width, result.data<T>() + width * i);
    }
    return result;
  };
  PointCloud result;
  result.positions = taken(cloud.positions, float{});
  result.intensity = taken(cloud.intensity, float{});
  result.time = taken(cloud.time, float{});
  result.ring = taken(cloud.ring, std::int32_t{});
  return result;
}

/// `count` of `rows`, each as likely as any other, ascending.
std::vector<std::int64_t> chosen_rows(std::int64_t rows, std::int64_t count, std::uint64_t seed) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rows));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (rows <= count) return order;
  Random random(seed, 7);
  for (std::int64_t i = 0; i < count; ++i) {
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(random.integer(i, rows - 1))]);
  }
  order.resize(static_cast<std::size_t>(count));
  std::sort(order.begin(), order.end());
  return order;
}

}   // namespace

DrivingInput driving_input(const DrivingWorkload& work, const std::string& scan, DrivingSize size,
                           std::uint64_t seed) {
  Scan found = scan_of(work, scan, seed);
  if (size == DrivingSize::tiny) found.cloud = near_points(found.cloud, kTinyReach);
  const VoxelOptions options{.size = work.voxel, .range = work.range};
  const Voxels voxels = voxelize(found.cloud, columns_of(found.cloud, work.in_channels), options);
  PUMICE_EXPECTS(voxels.size() > 0, work.name, ": none of the points of ", found.source,
                 " lies in a voxel; give a scan of its sensor");
  const std::int64_t most = size == DrivingSize::tiny ? kTinyVoxels
                            : work.most_voxels > 0    ? work.most_voxels
                                                      : voxels.size();
  const std::vector<std::int64_t> rows = chosen_rows(voxels.size(), most, seed);
  const auto count = static_cast<std::int64_t>(rows.size());
  DrivingInput input{.coordinates = Tensor({count, 4}, DType::i32),
                     .features = Tensor({count, work.in_channels}, DType::f32),
                     .source = std::move(found.source)};
  auto* cells = input.coordinates.data<std::int32_t>();
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = rows[static_cast<std::size_t>(i)];
    std::copy_n(voxels.coordinates.data<std::int32_t>() + 4 * row, 4, cells + 4 * i);
    std::copy_n(voxels.features.data<float>() + work.in_channels * row, work.in_channels,
                input.features.data<float>() + work.in_channels * i);
  }
  if (work.grid) {
    input.spatial_shape = *work.grid;
    return input;
  }
  for (int axis = 0; axis < 3; ++axis) {   // from 0 on, in a grid that halves four times
    std::int32_t low = cells[axis + 1], high = low;
    for (std::int64_t i = 0; i < count; ++i) {
      low = std::min(low, cells[4 * i + axis + 1]);
      high = std::max(high, cells[4 * i + axis + 1]);
    }
    for (std::int64_t i = 0; i < count; ++i)
      cells[4 * i + axis + 1] -= low;
    input.spatial_shape[static_cast<std::size_t>(axis)] = (high - low) / 16 * 16 + 16;
  }
  return input;
}

}   // namespace pumice::cli
