// A street with everything that stands, grows, parks, drives and walks in it.
#pragma once

#include <cstdint>
#include <vector>

#include "points/simulate_ground.hpp"
#include "points/simulate_shape.hpp"

namespace pumice::simulation {

struct Pose {
  Vec3 position;
  double yaw = 0;
};

class Scene {
 public:
  explicit Scene(std::uint64_t seed);

  const Ground& ground() const { return ground_; }
  /// Everything but the ground, where it is at time 0; a moving shape is at centre + velocity * t.
  const std::vector<Shape>& shapes() const { return shapes_; }
  /// Where a sensor `height_m` above the road is at time `t`.
  Pose sensor_pose(double t, double height_m) const;

 private:
  Ground ground_;
  std::vector<Shape> shapes_;
  double ego_y_;
  double ego_yaw_;
  double ego_speed_;
};

}   // namespace pumice::simulation
