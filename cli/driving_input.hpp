// The voxels of a driving benchmark: of a recorded scan where one is at hand, else of a simulated
// one.
#pragma once

#include <cstdint>
#include <string>

#include <pumice/core/tensor.hpp>

#include "driving_workloads.hpp"

namespace pumice::cli {

enum class DrivingSize : unsigned char {
  full,
  tiny,   // 300 voxels near the sensor, a quarter of MinkUNet42's widths: for tests
};

struct DrivingInput {
  Tensor coordinates;   // i32 [N, 4]: 0, x, y, z, all at least 0
  Tensor features;      // f32 [N, in_channels]
  Axes spatial_shape{};
  std::string source;   // "scan.bin", "simulated waymo64, 3 sweeps"
};

/// `scan`: a file, taken as all the sweeps there are; empty: what PUMICE_DATA has for the workload,
/// or else the street that `seed` names. What is left out at random follows `seed` too. UserError
/// for a scan without a voxel.
DrivingInput driving_input(const DrivingWorkload& work, const std::string& scan, DrivingSize size,
                           std::uint64_t seed);

}   // namespace pumice::cli
