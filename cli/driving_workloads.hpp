// The seven driving benchmarks by which engines for sparse convolution are compared, as data.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice::cli {

/// Axes are x, y, z with z up; metres.
struct DrivingWorkload {
  std::string_view name;   // "SK-M-1x"
  std::string_view dataset;
  std::string_view sensor;   // SensorModel::named, where no scan is at hand
  int sweeps = 1;
  std::array<float, 3> voxel{};
  std::optional<std::array<float, 6>> range{};   // absent: no crop, coordinates from 0 on
  std::optional<Axes> grid{};                    // of that range
  std::int64_t most_voxels = 0;                  // of a scan, the rest left out at random; 0: all
  std::int64_t in_channels = 4;    // the first of x, y, z, intensity, ring, time; a column a scan
                                   // does not have is 0
  std::string_view network = {};   // nn::find_network
  double width_factor = 1;         // of kDrivingWidths, minkunet42
  std::int64_t classes = 0;        // minkunet42
  std::int64_t training_batch = 2;
};

/// benchmarks/driving_suite/workloads.py has the same table, and a test compares them.
std::span<const DrivingWorkload> driving_workloads();
/// UserError that lists the names there are.
const DrivingWorkload& find_driving_workload(std::string_view name);

}   // namespace pumice::cli
