// The table of the seven.
#include "driving_workloads.hpp"

#include <string>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"

namespace pumice::cli {
namespace {

constexpr std::array<float, 3> kCube5{0.05f, 0.05f, 0.05f};
constexpr std::array<float, 3> kCube10{0.1f, 0.1f, 0.1f};
constexpr std::array<float, 6> kNuScenesRange{-51.2f, -51.2f, -5, 51.2f, 51.2f, 3};
constexpr std::array<float, 6> kWaymoRange{-75.2f, -75.2f, -2, 75.2f, 75.2f, 4};

constexpr DrivingWorkload segmentation(std::string_view name, std::string_view dataset,
                                       std::string_view sensor, int sweeps) {
  DrivingWorkload work{.name = name, .dataset = dataset, .sensor = sensor, .sweeps = sweeps};
  const bool kitti = dataset == "semantickitti";
  work.voxel = kitti ? kCube5 : kCube10;
  work.in_channels = kitti ? 4 : 6;
  work.network = "minkunet42";
  work.classes = kitti ? 19 : 32;
  return work;
}

// 40 cells of height and one more, as detectors have it. Their axis of height points down where the
// workloads were published: -3 to 5 m and -4 to 2 m there.
constexpr DrivingWorkload detection(std::string_view name, std::string_view dataset,
                                    std::string_view sensor, int sweeps) {
  DrivingWorkload work{.name = name, .dataset = dataset, .sensor = sensor, .sweeps = sweeps};
  const bool waymo = dataset == "waymo";
  work.voxel = {0.1f, 0.1f, waymo ? 0.15f : 0.2f};
  work.range = waymo ? kWaymoRange : kNuScenesRange;
  const std::int32_t cells = waymo ? 1504 : 1024;
  work.grid = Axes{cells, cells, 41, 0};
  work.most_voxels = waymo ? 150'000 : 60'000;
  work.in_channels = 6;
  work.network = "centerpoint";
  return work;
}

constexpr DrivingWorkload at_half_the_widths(DrivingWorkload work) {
  work.width_factor = 0.5;
  return work;
}

constexpr std::array kWorkloads{
    segmentation("SK-M-1x", "semantickitti", "beams64", 1),
    at_half_the_widths(segmentation("SK-M-0.5x", "semantickitti", "beams64", 1)),
    segmentation("NS-M-1f", "nuscenes", "beams32", 1),
    segmentation("NS-M-3f", "nuscenes", "beams32", 3),
    detection("NS-C-10f", "nuscenes", "beams32", 10),
    detection("WM-C-1f", "waymo", "waymo64", 1),
    detection("WM-C-3f", "waymo", "waymo64", 3),
};

}   // namespace

std::span<const DrivingWorkload> driving_workloads() {
  return kWorkloads;
}

const DrivingWorkload& find_driving_workload(std::string_view name) {
  std::string known;
  for (const DrivingWorkload& work : kWorkloads) {
    if (work.name == name) return work;
    known += known.empty() ? "" : ", ";
    known += work.name;
  }
  detail::raise_user("workload \"", printable(name), "\": there are ", known);
}

}   // namespace pumice::cli
