// Heights and surfaces of the street, and the march of a ray down to them.
#include "points/simulate_ground.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>

#include "points/simulate_labels.hpp"

namespace pumice::simulation {
namespace {

constexpr double kPavementOfCrossStreet = 2.2;
constexpr double kHighestRise = 0.5;   // of the open ground above the pavement
constexpr double kSteepest = 0.08;     // of any slope but the kerb

}   // namespace

Ground::Ground(std::uint64_t seed) : seed_(seed) {
  Random random(seed, 1);
  lane_half_ = random.uniform(3.5, 4.1);
  for (std::size_t side = 0; side < 2; ++side) {
    kerb_[side] = lane_half_ + random.uniform(1.9, 2.3);
    pavement_[side] = random.uniform(2.2, 3.4);
    rise_[side] = random.uniform(0.01, 0.05);
  }
  cross_x_ = random.uniform(24, 46);
  if (random.uniform() < 0.3) cross_x_ = -cross_x_;
  cross_half_ = random.uniform(3.2, 4.4);
  const double phase = random.uniform(0, 2 * std::numbers::pi);
  const double swell = random.uniform(0.1, 0.45);
  for (int i = 0; i < kSamples; ++i) {
    const double x = i * kStep - kLength / 2;
    profile_[static_cast<std::size_t>(i)] =
        swell * (std::sin(x / 24 + phase) - std::sin(phase)) +
        0.25 * swell * (std::sin(x / 9 + 2 * phase) - std::sin(2 * phase));
  }
}

double Ground::off_road(double x, double y) const {
  return std::min(std::abs(y) - kerb_[y > 0], std::abs(x - cross_x_) - cross_half_);
}

double Ground::height(double x, double y) const {
  const double at = std::clamp((x + kLength / 2) / kStep, 0.0, kSamples - 1.001);
  const auto i = static_cast<std::size_t>(at);
  const double part = at - static_cast<double>(i);
  double z = profile_[i] + (profile_[i + 1] - profile_[i]) * part;
  const double off = off_road(x, y);
  if (off < 0) {
    z += 0.015 * std::max(lane_half_ - std::abs(y), 0.0);   // camber, for the rain
  } else {
    const double open = std::max(off - pavement_[y > 0], 0.0);
    z += kKerb + 0.015 * std::min(off, 2.0) + std::min(open * rise_[y > 0], kHighestRise);
  }
  return z;
}

Ground::Surface Ground::surface(double x, double y) const {
  const double off = off_road(x, y);
  if (off > 0) {
    const bool beside_cross = std::abs(y) - kerb_[y > 0] > pavement_[y > 0];
    const double width = beside_cross ? kPavementOfCrossStreet : pavement_[y > 0];
    if (off < width) return {kSidewalk, 0.34, 0.006};
    const double patch = lattice_noise({x * 0.2, y * 0.2, 0}, seed_);
    return {kTerrain, 0.30 + 0.12 * patch, 0.02 + 0.05 * patch};
  }
  const double from_cross = std::abs(x - cross_x_) - cross_half_;
  if (from_cross > 4 && std::abs(y) > lane_half_) return {kParking, 0.26, 0.006};
  const bool dashed = x - std::floor(x / 6) * 6 < 3;
  if (from_cross > 2 && std::abs(y) < 0.07 && dashed) return {kLaneMarking, 0.75, 0.002};
  if (from_cross > 1 && from_cross < 1.5 && std::abs(y) < lane_half_)
    return {kLaneMarking, 0.7, 0.002};
  const double worn = lattice_noise({x * 0.3, y * 0.8, 7}, seed_);
  return {kRoad, 0.18 + 0.1 * worn, 0.006};
}

bool Ground::intersect(const Ray& ray, Hit& hit) const {
  const Vec3 d = ray.direction;
  if (d.z > 0.02) return false;   // climbs faster than any ground far away
  // Far above the ground the clearance bounds the step; near it the step is short enough to notice
  // a kerb, which is the only thing that is steep.
  const double margin = kKerb + 0.1;
  const double short_step = 0.06 / std::max(-d.z, 0.02);
  double before = 0;
  double t = 0;
  while (true) {
    const Vec3 p = ray.at(t);
    const double clearance = p.z - height(p.x, p.y);
    if (clearance <= 0) break;
    before = t;
    t += std::max((clearance - margin) / (kSteepest - d.z), std::min(short_step, 0.25 + 0.02 * t));
    if (before >= hit.t || t > 10 * kLength) return false;
  }
  double after = t;
  for (int halving = 0; halving < 18; ++halving) {   // 3 m down to 0.01 mm
    const double middle = (before + after) / 2;
    const Vec3 p = ray.at(middle);
    (p.z > height(p.x, p.y) ? before : after) = middle;
  }
  if (after >= hit.t) return false;

  const Vec3 p = ray.at(after);
  const double beyond = off_road(p.x + 0.02 * d.x, p.y + 0.02 * d.y);
  const bool face = off_road(p.x - 0.02 * d.x, p.y - 0.02 * d.y) < 0 && beyond > 0;
  const Surface found = surface(p.x + 0.02 * d.x, p.y + 0.02 * d.y);
  const double bump = (lattice_noise(p * 6.0, seed_ + 1) - 0.5) * 2 * found.bump;
  // A bump of height b is met b / sin(angle) earlier; at grazing angles its neighbours hide it.
  hit = {after - bump / std::max(-d.z, 0.12), face ? 0.7 : std::max(-d.z, 0.004),
         found.reflectivity, found.label, false};
  return true;
}

}   // namespace pumice::simulation
