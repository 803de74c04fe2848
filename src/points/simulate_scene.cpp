// Lays a street out: houses and gardens by parcel, then what stands on the pavement, then traffic.
#include "points/simulate_scene.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "points/simulate_objects.hpp"

namespace pumice::simulation {
namespace {

constexpr double kEnd = 140;   // houses, trees and cars stand at |x| < kEnd
// Half the stretch of road around the sensor without vehicles: one beside it hides half the street.
constexpr double kRoom = 6;
constexpr double kPi = std::numbers::pi;

class Layout {
 public:
  Layout(const Ground& ground, Shapes& shapes, double ego_speed, std::uint64_t seed)
      : ground_(ground), shapes_(shapes), ego_speed_(ego_speed), random_(seed, 2) {}

  void build() {
    for (const bool left : {false, true}) {
      parcels(left);
      pavement(left);
      parked(left);
    }
    cross_street();
    backdrop();
    traffic();
  }

 private:
  Vec3 on_ground(double x, double y) const { return {x, y, ground_.height(x, y)}; }
  bool chance(double probability) { return random_.uniform() < probability; }
  double uniform(double low, double high) { return random_.uniform(low, high); }
  /// Whether a thing from x - half to x + half keeps clear of the cross street and its pavements.
  bool clear_of_cross(double x, double half) const {
    return std::abs(x - ground_.cross_x()) > ground_.cross_half() + 2.4 + half;
  }

  void parcels(bool left) {
    const double side = left ? 1 : -1;
    const double edge = ground_.pavement_end(left);
    const double set_back = uniform(1.4, 5.2);   // of the houses of this side
    double x = -kEnd;
    while (x < kEnd) {
      const double width = uniform(9, 19);
      const double centre = x + width / 2;
      x += width + (chance(0.35) ? uniform(0.3, 1.5) : uniform(3, 9));
      if (!clear_of_cross(centre, width / 2)) continue;
      if (chance(0.24)) {
        park(centre, width, side, edge);
      } else {
        house(centre, width, side, edge, set_back + uniform(-0.5, 0.7));
      }
    }
  }

  void house(double centre, double width, double side, double edge, double set_back) {
    const double depth = uniform(8, 12);
    const double height = 2.9 * static_cast<double>(random_.integer(2, 4)) + 0.4;
    const double y = side * (edge + set_back + depth / 2);
    add_house(shapes_, on_ground(centre, y), 0, {width, depth, height}, random_);
    if (set_back < 1.6) return;
    const double garden = side * (edge + 0.4);
    const double kind = random_.uniform();
    if (kind < 0.35) {
      const double high = uniform(0.8, 1.6);
      add_hedge(shapes_, on_ground(centre + 0.8, garden), 0, {width - 2.6, 0.7, high});
    } else if (kind < 0.7) {
      add_fence(shapes_, on_ground(centre + 0.8, garden), 0, width - 2.6, 1.15);
    }
    if (set_back < 2.2) return;
    const int bushes = static_cast<int>(random_.integer(0, 3));
    for (int i = 0; i < bushes; ++i) {
      const double at = centre + uniform(-0.42, 0.42) * width;
      add_bush(shapes_, on_ground(at, side * (edge + 0.5 * set_back + 0.3)), random_);
    }
  }

  void park(double centre, double width, double side, double edge) {
    const int trees = static_cast<int>(random_.integer(2, 4));
    for (int i = 0; i < trees; ++i) {
      const double x = centre + uniform(-0.45, 0.45) * width;
      const double y = side * (edge + uniform(1.5, 14));
      add_tree(shapes_, on_ground(x, y), uniform(6, 12), random_);
    }
    const int bushes = static_cast<int>(random_.integer(2, 5));
    for (int i = 0; i < bushes; ++i) {
      const double x = centre + uniform(-0.5, 0.5) * width;
      add_bush(shapes_, on_ground(x, side * (edge + uniform(1, 8))), random_);
    }
    add_hedge(shapes_, on_ground(centre, side * (edge + 16)), 0, {width, 1.2, 2.4});
  }

  void pavement(bool left) {
    const double side = left ? 1 : -1;
    const double kerb = side * (ground_.kerb(left) + 0.45);
    const double wall = side * (ground_.pavement_end(left) - 0.35);
    const double towards_road = -side * kPi / 2;
    for (double x = -kEnd + uniform(0, 25); x < kEnd; x += uniform(25, 31)) {
      if (clear_of_cross(x, 0.5)) add_lamp(shapes_, on_ground(x, kerb), towards_road);
    }
    const double tree_chance = uniform(0.3, 0.8);
    for (double x = -kEnd + uniform(3, 9); x < kEnd; x += uniform(9, 14)) {
      if (chance(tree_chance) && clear_of_cross(x, 2)) {
        add_tree(shapes_, on_ground(x, kerb), uniform(4.5, 8), random_);
      }
    }
    for (double x = -kEnd + uniform(0, 40); x < kEnd; x += uniform(22, 45)) {
      if (clear_of_cross(x, 0.5)) add_sign(shapes_, on_ground(x, kerb), left ? 0 : kPi, random_);
    }
    for (const double corner : {-1.0, 1.0}) {   // right of way at the crossing
      const double x = ground_.cross_x() + corner * (ground_.cross_half() + 1.2);
      add_sign(shapes_, on_ground(x, kerb), corner > 0 ? 0 : kPi, random_);
    }
    for (double x = -kEnd + uniform(0, 15); x < kEnd; x += uniform(6, 24)) {
      if (!clear_of_cross(x, 1)) continue;
      if (chance(0.6)) {
        add_bin(shapes_, on_ground(x, wall), towards_road);
      } else {
        add_bicycle(shapes_, {on_ground(x, wall), uniform(-0.3, 0.3), 0});
      }
    }
    const int people = static_cast<int>(random_.integer(4, 9));
    for (int i = 0; i < people; ++i) {
      const double x = uniform(-45, 45);
      const double y = side * uniform(ground_.kerb(left) + 0.9, ground_.pavement_end(left) - 0.7);
      const bool walks = chance(0.75);
      const double speed = walks ? uniform(0.9, 1.6) : 0;
      const double yaw = chance(0.5) ? uniform(-0.1, 0.1) : kPi + uniform(-0.1, 0.1);
      add_person(shapes_, {on_ground(x, y), yaw, speed}, random_);
    }
  }

  void parked(bool left) {
    const double y = (left ? 1 : -1) * (ground_.lane_half() + 1.05);
    const double occupied = uniform(0.25, 0.6);
    for (double x = -kEnd + uniform(0, 6); x < kEnd; x += uniform(5.6, 6.6)) {
      if (!clear_of_cross(x, 5) || std::abs(x) < kRoom || !chance(occupied)) continue;
      const double yaw = (left ? kPi : 0) + uniform(-0.03, 0.03);
      const double aside = uniform(-0.1, 0.1);
      if (chance(0.06) && std::abs(x) > 2 * kRoom) {
        x += 3;
        add_lorry(shapes_, {on_ground(x, y), yaw, 0}, random_);
        x += 3;
      } else {
        add_car(shapes_, {on_ground(x, y + aside), yaw, 0}, random_);
      }
    }
  }

  void cross_street() {
    for (const double side : {-1.0, 1.0}) {
      for (const double way : {-1.0, 1.0}) {
        const double edge = ground_.cross_half() + 2.2;
        for (double y = uniform(30, 36); y < 110; y += uniform(16, 26)) {
          const double x = ground_.cross_x() + way * (edge + 6 + uniform(0.5, 2.5));
          const double width = uniform(10, 16);
          add_house(shapes_, on_ground(x, side * y), kPi / 2, {width, 10, 6.2}, random_);
        }
        for (double y = uniform(20, 30); y < 80; y += uniform(12, 22)) {
          const double x = ground_.cross_x() + way * (edge + 0.8);
          add_tree(shapes_, on_ground(x, side * y), uniform(5, 9), random_);
        }
      }
    }
  }

  /// What is seen between the houses: the next street and the trees of the yards.
  void backdrop() {
    for (const double side : {-1.0, 1.0}) {
      for (double x = -kEnd; x < kEnd; x += uniform(9, 20)) {
        const double y = side * uniform(24, 34);
        if (clear_of_cross(x, 3)) add_tree(shapes_, on_ground(x, y), uniform(6, 12), random_);
      }
      for (double x = -kEnd; x < kEnd; x += uniform(22, 40)) {
        const double y = side * uniform(48, 62);
        const double width = uniform(12, 22);
        if (clear_of_cross(x, width / 2)) {
          add_house(shapes_, on_ground(x, y), 0, {width, 11, 9.1}, random_);
        }
      }
    }
    for (const double end : {-1.0, 1.0}) {   // the street bends away: trees and houses across it
      for (double y = -30; y <= 30; y += uniform(6, 10)) {
        add_tree(shapes_, on_ground(end * (kEnd + 4), y), uniform(8, 13), random_);
      }
    }
  }

  void traffic() {
    const double lane = ground_.lane_half() / 2;
    const double own = ego_speed_;   // nobody in its lane runs into the sensor, however many sweeps
    drive(uniform(13, 26), -lane, 0, own, own);
    drive(uniform(-32, -14), -lane, 0, own, own);
    drive(uniform(50, 80), -lane, 0, own, own);
    for (double x = -70 + uniform(0, 25); x < 100; x += uniform(18, 45)) {
      if (std::abs(x) > 2 * kRoom) drive(x, lane, kPi, 5, 11);
    }
    for (int i = 0; i < 2; ++i) {   // people at the crossing
      const double x = ground_.cross_x() - ground_.cross_half() - uniform(0.6, 1.6);
      const double y = uniform(-3, 3);
      add_person(shapes_, {on_ground(x, y), chance(0.5) ? kPi / 2 : -kPi / 2, 1.3}, random_);
    }
  }

  void drive(double x, double y, double yaw, double slowest, double fastest) {
    const Placement at{on_ground(x, y), yaw, uniform(slowest, fastest)};
    const double kind = random_.uniform();
    if (kind < 0.78) {
      add_car(shapes_, at, random_);
    } else if (kind < 0.9) {
      add_lorry(shapes_, at, random_);
    } else {
      add_bus(shapes_, at, random_);
    }
  }

  const Ground& ground_;
  Shapes& shapes_;
  double ego_speed_;
  Random random_;
};

}   // namespace

Scene::Scene(std::uint64_t seed) : ground_(seed) {
  Random random(seed, 3);
  ego_y_ = -ground_.lane_half() / 2 + random.uniform(-0.2, 0.2);
  ego_yaw_ = random.uniform(-0.03, 0.03);
  ego_speed_ = random.uniform(5, 10);
  Layout(ground_, shapes_, ego_speed_, seed).build();
}

Pose Scene::sensor_pose(double t, double height_m) const {
  const double path = ego_speed_ * t;
  const double x = path * std::cos(ego_yaw_);
  const double y = ego_y_ + path * std::sin(ego_yaw_);
  return {{x, y, ground_.height(x, y) + height_m}, ego_yaw_};
}

}   // namespace pumice::simulation
