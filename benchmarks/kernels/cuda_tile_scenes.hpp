// Kernel maps at which tile kernels are measured: the levels of MinkUNet42 on a SemanticKITTI
// frame, those of CenterPoint on ten nuScenes sweeps, and shells of a sphere as 3-D generation has
// them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::bench {

/// A point cloud below PUMICE_DATA, or a simulated sweep, which is said on standard error.
inline PointCloud cloud_or_sweep(const std::string& name) {
  const char* data = std::getenv("PUMICE_DATA");
  const std::filesystem::path path = std::filesystem::path(data == nullptr ? "" : data) / name;
  if (data != nullptr && std::filesystem::exists(path)) return read_points(path);
  std::fprintf(stderr, "%s is not there (PUMICE_DATA): a simulated sweep instead\n", name.c_str());
  return simulate({});
}

inline CoordinateSetPtr street(int level) {
  const PointCloud cloud = cloud_or_sweep("lidar/semantickitti/seq00_000000.bin");
  const Voxels voxels =
      voxelize(cloud, point_features(cloud), {.size = {0.05f, 0.05f, 0.05f}, .range = {}});
  CoordinateSetPtr set = CoordinateSet::create(voxels.coordinates.view());
  KernelWindow halving;
  halving.size = axes(3, 2);
  halving.stride = axes(3, 2);
  for (int i = 0; i < level; ++i)
    set = strided_set(set, halving, StridedOutputs::cell);
  return set;
}

/// The grid and strides of CenterPoint's encoder: 0.075 m, 1440 × 1440 × 41.
inline CoordinateSetPtr sweeps(int level) {
  const PointCloud cloud = cloud_or_sweep("lidar/nuscenes/ten_sweeps_f16x5.bin");
  const Voxels voxels =
      voxelize(cloud, point_features(cloud),
               {.size = {0.075f, 0.075f, 0.2f}, .range = {{-54.f, -54.f, -5.f, 54.f, 54.f, 3.f}}});
  CoordinateOptions options;
  options.spatial_shape = Axes{1440, 1440, 41, 1};
  CoordinateSetPtr set = CoordinateSet::create(voxels.coordinates.view(), options);
  for (int i = 0; i < level; ++i) {
    KernelWindow halving;
    halving.size = axes(3, 3);
    halving.stride = axes(3, 2);
    halving.padding = i < 2 ? Axes{1, 1, 1, 0} : Axes{1, 1, 0, 0};
    set = strided_set(set, halving, StridedOutputs::dilating);
  }
  return set;
}

/// The cells of a cube of `resolution` cells a side that lie up to 1.25 cells inside its inscribed
/// sphere, as FlexGEMM's benchmark has them: 12.6 to 13.1 pairs a row.
inline CoordinateSetPtr shell(std::int32_t resolution) {
  std::vector<std::int32_t> cells;
  const double centre = 0.5 * (resolution - 1), radius = 0.5 * resolution;
  const auto square = [&](std::int32_t cell) { return (cell - centre) * (cell - centre); };
  for (std::int32_t x = 0; x < resolution; ++x) {
    for (std::int32_t y = 0; y < resolution; ++y) {
      for (std::int32_t z = 0; z < resolution; ++z) {
        const double distance = std::sqrt(square(x) + square(y) + square(z));
        if (distance <= radius && distance >= radius - 1.25)
          cells.insert(cells.end(), {0, x, y, z});
      }
    }
  }
  Tensor coordinates(Shape{static_cast<std::int64_t>(cells.size() / 4), 4}, DType::i32);
  std::copy(cells.begin(), cells.end(), coordinates.span<std::int32_t>().begin());
  return CoordinateSet::create(coordinates);
}

/// 3³ submanifold map of a scene: "kitti_0" … "kitti_4", "nus_0" … "nus_3", "shell_<resolution>".
inline KernelMapPtr scene_map(const std::string& name) {
  const auto underscore = name.find('_');
  PUMICE_EXPECTS(underscore != std::string::npos, "scene ", name, ": kitti_0, nus_0 or shell_64");
  const std::string kind = name.substr(0, underscore);
  const int number = std::stoi(name.substr(underscore + 1));
  const CoordinateSetPtr set = kind == "kitti" ? street(number)
                               : kind == "nus" ? sweeps(number)
                                               : shell(number);
  return submanifold_map(set, submanifold_window(3, axes(3, 3), axes(3, 1)));
}

/// A layer to measure and what it is to stay under, in microseconds.
struct MeasuredLayer {
  const char* scene;
  int in_channels, out_channels;
  double bar;   // 0: none was set
};

inline constexpr MeasuredLayer kMeasuredLayers[] = {
    {"kitti_0", 4, 32, 0},          {"kitti_0", 16, 16, 0},        {"kitti_0", 32, 32, 16},
    {"kitti_0", 96, 96, 35},        {"kitti_0", 128, 96, 0},       {"kitti_1", 16, 16, 0},
    {"kitti_1", 32, 32, 0},         {"kitti_1", 64, 64, 25},       {"kitti_1", 96, 96, 0},
    {"kitti_1", 128, 96, 0},        {"kitti_1", 128, 128, 45},     {"kitti_1", 256, 256, 125},
    {"kitti_2", 32, 64, 0},         {"kitti_2", 64, 64, 0},        {"kitti_2", 128, 128, 0},
    {"kitti_2", 192, 128, 0},       {"kitti_3", 64, 128, 0},       {"kitti_3", 128, 128, 0},
    {"kitti_3", 256, 256, 60},      {"kitti_3", 384, 256, 0},      {"kitti_4", 128, 256, 0},
    {"kitti_4", 256, 256, 0},       {"nus_0", 5, 16, 0},           {"nus_0", 16, 16, 25},
    {"nus_1", 32, 32, 0},           {"nus_2", 64, 64, 0},          {"nus_3", 128, 128, 36},
    {"shell_64", 1024, 1024, 1000}, {"shell_128", 512, 512, 1000}, {"shell_256", 256, 256, 900},
};

}   // namespace pumice::bench
