// The things of a street, each put together from shapes.
#pragma once

#include <cstdint>
#include <vector>

#include "points/simulate_shape.hpp"

namespace pumice::simulation {

/// Where a thing stands (on the ground), which way it faces, and how it moves.
struct Placement {
  Vec3 base;
  double yaw = 0;
  double speed = 0;   // m/s along yaw; not 0 turns the label into that of a moving thing
};

using Shapes = std::vector<Shape>;

void add_car(Shapes& shapes, const Placement& at, Random& random);
/// A lorry with a box body, or a bus.
void add_lorry(Shapes& shapes, const Placement& at, Random& random);
void add_bus(Shapes& shapes, const Placement& at, Random& random);
void add_bicycle(Shapes& shapes, const Placement& at);
void add_person(Shapes& shapes, const Placement& at, Random& random);
/// Trunk and crown, `height` metres tall.
void add_tree(Shapes& shapes, Vec3 base, double height, Random& random);
void add_bush(Shapes& shapes, Vec3 base, Random& random);
void add_hedge(Shapes& shapes, Vec3 base, double yaw, Vec3 size);
void add_fence(Shapes& shapes, Vec3 base, double yaw, double length, double height);
/// A post with an arm over the road, towards yaw.
void add_lamp(Shapes& shapes, Vec3 base, double yaw);
/// A post with a plate that faces yaw.
void add_sign(Shapes& shapes, Vec3 base, double yaw, Random& random);
void add_bin(Shapes& shapes, Vec3 base, double yaw);
/// A house: walls with windows and a gabled roof whose ridge runs along yaw.
void add_house(Shapes& shapes, Vec3 base, double yaw, Vec3 size, Random& random);

}   // namespace pumice::simulation
