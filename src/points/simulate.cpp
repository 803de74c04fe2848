// Sensors, and the sweeps of a drive gathered into one point cloud.
#include <pumice/points/simulate.hpp>

#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"
#include "points/simulate_scan.hpp"

namespace pumice {
namespace {

using simulation::Pose;
using simulation::Return;
using simulation::Vec3;

constexpr int kMostSweeps = 100;
constexpr std::int64_t kMostFirings = 1 << 27;   // 1.6 GB of returns

void check(const SimulationOptions& options) {
  const SensorModel& sensor = options.sensor;
  PUMICE_EXPECTS(options.sweeps >= 1 && options.sweeps <= kMostSweeps, "sweeps = ", options.sweeps,
                 ": ask for 1 to ", kMostSweeps);
  PUMICE_EXPECTS(!sensor.elevations_deg.empty() && sensor.elevations_deg.size() <= 1024,
                 "sensor.elevations_deg has ", sensor.elevations_deg.size(),
                 " lasers: give 1 to 1024 of them");
  for (const double elevation : sensor.elevations_deg) {
    PUMICE_EXPECTS(std::abs(elevation) < 90, "sensor.elevations_deg holds ", elevation,
                   ": a laser points between -90 and 90 degrees");
  }
  PUMICE_EXPECTS(sensor.columns >= 1 && sensor.columns <= 65536,
                 "sensor.columns = ", sensor.columns, ": a turn has 1 to 65536 columns");
  PUMICE_EXPECTS(sensor.min_range_m >= 0 && sensor.min_range_m < sensor.max_range_m &&
                     sensor.max_range_m <= 1000,
                 "sensor range = ", sensor.min_range_m, " to ", sensor.max_range_m,
                 " m: give an interval within 0 to 1000 m");
  PUMICE_EXPECTS(sensor.height_m > 0 && sensor.height_m <= 10,
                 "sensor.height_m = ", sensor.height_m, ": mount it 0 to 10 m above the road");
  PUMICE_EXPECTS(sensor.turns_per_s >= 1 && sensor.turns_per_s <= 1000,
                 "sensor.turns_per_s = ", sensor.turns_per_s, ": give 1 to 1000 turns a second");
  PUMICE_EXPECTS(sensor.range_deviation_m >= 0 && sensor.range_deviation_m <= 1,
                 "sensor.range_deviation_m = ", sensor.range_deviation_m,
                 ": give a standard deviation of 0 to 1 m");
  const std::int64_t firings =
      static_cast<std::int64_t>(sensor.elevations_deg.size()) * sensor.columns * options.sweeps;
  PUMICE_EXPECTS(firings <= kMostFirings, "the sensor fires ", firings, " times in ",
                 options.sweeps, " sweeps: ask for at most ", kMostFirings,
                 " (lasers x columns x sweeps)");
}

/// Takes a point of one sensor frame to another: both are turned about z only.
class Transfer {
 public:
  Transfer(const Pose& from, const Pose& to)
      : cos_(std::cos(from.yaw - to.yaw)), sin_(std::sin(from.yaw - to.yaw)) {
    const Vec3 shift = from.position + to.position * -1.0;
    const double c = std::cos(to.yaw), s = std::sin(to.yaw);
    shift_ = {c * shift.x + s * shift.y, c * shift.y - s * shift.x, shift.z};
  }
  Vec3 operator()(Vec3 p) const {
    return {cos_ * p.x - sin_ * p.y + shift_.x, sin_ * p.x + cos_ * p.y + shift_.y, p.z + shift_.z};
  }

 private:
  double cos_;
  double sin_;
  Vec3 shift_;
};

}   // namespace

SensorModel SensorModel::beams64() {
  SensorModel sensor{"beams64", {}, 2048, 2.0, 120, 1.73, 10, 0.02};
  // Two blocks of 32: a third of a degree apart from the top one, then about half a degree.
  for (int i = 0; i < 32; ++i)
    sensor.elevations_deg.push_back(2.0 - i / 3.0);
  for (int i = 0; i < 32; ++i)
    sensor.elevations_deg.push_back(-8.83 - i * (24.8 - 8.83) / 31);
  return sensor;
}

SensorModel SensorModel::beams32() {
  SensorModel sensor{"beams32", {}, 1084, 2.0, 105, 1.84, 20, 0.02};
  for (int i = 0; i < 32; ++i)
    sensor.elevations_deg.push_back(10.67 - i * 41.34 / 31);
  return sensor;
}

SensorModel SensorModel::waymo64() {
  SensorModel sensor{"waymo64", {}, 2650, 1.0, 75, 2.18, 10, 0.02};
  for (int i = 0; i < 64; ++i)
    sensor.elevations_deg.push_back(2.4 - i * 20.0 / 63);
  return sensor;
}

SensorModel SensorModel::named(std::string_view name) {
  std::string known;
  for (SensorModel& sensor : std::array{beams64(), beams32(), waymo64()}) {
    if (sensor.name == name) return std::move(sensor);
    known += (known.empty() ? "" : ", ") + sensor.name;
  }
  detail::raise_user("sensor = \"", printable(name), "\": there are ", known);
}

PointCloud simulate(const SimulationOptions& options) {
  check(options);
  const SensorModel& sensor = options.sensor;
  const auto lasers = static_cast<int>(sensor.elevations_deg.size());
  const auto firings = static_cast<std::size_t>(sensor.columns) * static_cast<std::size_t>(lasers);
  const simulation::Scene scene(options.seed);
  const auto time_of = [&](int sweep) {
    return (sweep + 1 - options.sweeps) / sensor.turns_per_s;   // 0 for the last
  };

  std::vector<std::vector<Return>> sweeps(static_cast<std::size_t>(options.sweeps));
  std::int64_t points = 0;
  for (int s = 0; s < options.sweeps; ++s) {
    auto& returns = sweeps[static_cast<std::size_t>(s)];
    returns.resize(firings);
    const double t = time_of(s);
    const auto age = static_cast<std::uint64_t>(options.sweeps - 1 - s);
    simulation::scan(scene, sensor, scene.sensor_pose(t, sensor.height_m), t,
                     mix_bits(options.seed + 1) + age, returns);
    for (const Return& r : returns)
      points += r.range > 0;
  }

  PointCloud cloud;
  cloud.positions = Tensor({points, 3}, DType::f32);
  cloud.intensity = Tensor({points}, DType::f32);
  cloud.labels = Tensor({points}, DType::i32);
  cloud.ring = Tensor({points}, DType::i32);
  if (options.sweeps > 1) cloud.time = Tensor({points}, DType::f32);

  const Pose last = scene.sensor_pose(0, sensor.height_m);
  std::int64_t row = 0;
  for (int s = 0; s < options.sweeps; ++s) {
    const double t = time_of(s);
    const Transfer to_last(scene.sensor_pose(t, sensor.height_m), last);
    for (std::size_t f = 0; f < firings; ++f) {
      const Return& r = sweeps[static_cast<std::size_t>(s)][f];
      if (r.range <= 0) continue;
      const int laser = static_cast<int>(f) % lasers;
      const Vec3 direction =
          simulation::firing_direction(sensor, static_cast<int>(f) / lasers, laser);
      const Vec3 p = to_last(direction * static_cast<double>(r.range));
      float* position = cloud.positions.data<float>() + 3 * row;
      position[0] = static_cast<float>(p.x);
      position[1] = static_cast<float>(p.y);
      position[2] = static_cast<float>(p.z);
      cloud.intensity.data<float>()[row] = r.intensity;
      cloud.labels.data<std::int32_t>()[row] = r.label;
      cloud.ring.data<std::int32_t>()[row] = laser;
      if (options.sweeps > 1) cloud.time.data<float>()[row] = static_cast<float>(-t);
      ++row;
    }
  }
  return cloud;
}

}   // namespace pumice
