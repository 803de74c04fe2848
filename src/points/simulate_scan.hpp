// One turn of a spinning sensor in a scene.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/points/simulate.hpp>

#include "points/simulate_scene.hpp"

namespace pumice::simulation {

/// What came back to one laser at one column. `range` is 0 where nothing did.
struct Return {
  float range = 0;
  float intensity = 0;
  std::int32_t label = 0;
};

/// Fires all lasers at all columns from `pose` while the scene stands as it does at time `t`.
/// `returns` has columns × lasers entries, column by column. `noise_seed` names the noise.
void scan(const Scene& scene, const SensorModel& sensor, const Pose& pose, double t,
          std::uint64_t noise_seed, std::span<Return> returns);

/// The unit vector of a firing, in the frame of the sensor. Column 0 looks back, then left.
Vec3 firing_direction(const SensorModel& sensor, int column, int laser);

}   // namespace pumice::simulation
