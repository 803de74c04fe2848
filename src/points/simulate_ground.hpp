// The ground of a street: carriageway, parking strips, pavement behind a kerb, open ground, a cross
// street, and the gentle ups and downs of all of it.
//
//     open ground │ pavement ┌ parking ┊ lane ┊ lane ┊ parking ┐ pavement │ open ground
//     ────────────┴──────────┘─────────────────────────────────└──────────┴────────────
//                                        y = 0, x along the street
#pragma once

#include <array>
#include <cstdint>

#include "points/simulate_shape.hpp"

namespace pumice::simulation {

class Ground {
 public:
  static constexpr double kLength = 400;   // metres of the street that are modelled, x in ±200
  static constexpr double kKerb = 0.13;    // height of the pavement above the road

  explicit Ground(std::uint64_t seed);

  double lane_half() const { return lane_half_; }        // half the carriageway without parking
  double kerb(bool left) const { return kerb_[left]; }   // |y| of the kerb
  double pavement_end(bool left) const { return kerb_[left] + pavement_[left]; }
  double cross_x() const { return cross_x_; }         // centre of the cross street
  double cross_half() const { return cross_half_; }   // half its width

  /// Height above the datum, without the small bumps.
  double height(double x, double y) const;
  /// Where `ray` meets the ground before `hit.t`; then fills `hit` and returns true.
  bool intersect(const Ray& ray, Hit& hit) const;

 private:
  static constexpr double kStep = 2;   // metres between the samples of the profile
  static constexpr int kSamples = static_cast<int>(kLength / kStep) + 1;

  struct Surface {
    std::int32_t label;
    double reflectivity;
    double bump;   // metres, half the height of its roughness
  };
  Surface surface(double x, double y) const;
  /// Metres from (x, y) to the nearest kerb, negative on the road.
  double off_road(double x, double y) const;

  std::uint64_t seed_;
  double lane_half_;
  std::array<double, 2> kerb_{};
  std::array<double, 2> pavement_{};
  std::array<double, 2> rise_{};   // slope of the open ground away from the pavement
  double cross_x_;
  double cross_half_;
  std::array<double, kSamples> profile_{};
};

}   // namespace pumice::simulation
