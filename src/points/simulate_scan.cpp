// Traces the rays of one turn. A column of lasers lies in one upright plane, so shapes are sorted
// into columns by azimuth once, and a ray looks only at those of its column, nearest first.
#include "points/simulate_scan.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <pumice/core/parallel.hpp>

namespace pumice::simulation {
namespace {

constexpr double kTurn = 2 * std::numbers::pi;
constexpr std::int64_t kColumnsPerChunk = 16;

/// A shape whose bounding cylinder the plane of a column cuts, from `near` to `far` metres ahead.
struct Candidate {
  std::int32_t shape;
  double near;
  double far;
};

/// The shapes of each column, by the azimuths their bounding cylinders cover.
std::vector<std::vector<std::int32_t>> sort_into_columns(const std::vector<Shape>& shapes,
                                                         const SensorModel& sensor,
                                                         const Pose& pose) {
  std::vector<std::vector<std::int32_t>> columns(static_cast<std::size_t>(sensor.columns));
  const double per_radian = sensor.columns / kTurn;
  for (std::size_t s = 0; s < shapes.size(); ++s) {
    const double dx = shapes[s].centre.x - pose.position.x;
    const double dy = shapes[s].centre.y - pose.position.y;
    const double distance = std::sqrt(dx * dx + dy * dy);
    if (distance - shapes[s].radius > sensor.max_range_m) continue;
    std::int64_t first = 0;
    std::int64_t last = sensor.columns - 1;
    if (distance > shapes[s].radius) {
      // Columns turn clockwise, starting behind the sensor.
      const double middle = (std::numbers::pi - (std::atan2(dy, dx) - pose.yaw)) * per_radian;
      const double reach = std::asin(shapes[s].radius / distance) * per_radian + 1;
      first = static_cast<std::int64_t>(std::floor(middle - reach));
      last = std::min(static_cast<std::int64_t>(std::ceil(middle + reach)),
                      first + sensor.columns - 1);
    }
    for (std::int64_t c = first; c <= last; ++c) {
      const std::int64_t wrapped = ((c % sensor.columns) + sensor.columns) % sensor.columns;
      columns[static_cast<std::size_t>(wrapped)].push_back(static_cast<std::int32_t>(s));
    }
  }
  return columns;
}

/// The candidates of the upright plane through `pose` along (x, y), nearest first.
void find_candidates(const std::vector<Shape>& shapes, const std::vector<std::int32_t>& column,
                     const Pose& pose, Vec2 along, std::vector<Candidate>& candidates) {
  candidates.clear();
  for (const std::int32_t s : column) {
    const Shape& shape = shapes[static_cast<std::size_t>(s)];
    const double dx = shape.centre.x - pose.position.x;
    const double dy = shape.centre.y - pose.position.y;
    const double ahead = dx * along.x + dy * along.y;
    const double aside = dy * along.x - dx * along.y;
    const double under_root = shape.radius * shape.radius - aside * aside;
    if (under_root < 0) continue;
    const double half = std::sqrt(under_root);
    if (ahead + half > 0) candidates.push_back({s, std::max(ahead - half, 0.0), ahead + half});
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    return a.near != b.near ? a.near < b.near : a.shape < b.shape;
  });
}

/// Whether the roof of the car that carries the sensor is in the way: 0.5 m below it, 2.8 m long
/// and 1.2 m wide. It takes the steepest lasers ahead and behind.
bool hidden_by_roof(Vec3 direction) {
  if (direction.z >= 0) return false;
  const double t = 0.5 / -direction.z;
  return std::abs(direction.x * t) < 1.4 && std::abs(direction.y * t) < 0.6;
}

/// Whether enough light comes back to be noticed: it falls with the square of the distance. A wall
/// is seen to the end of the range, the road at a grazing angle to about 50 m.
bool noticed(const Hit& hit, Random& random) {
  constexpr double kStray = 0.018;      // returns that get lost anyhow
  constexpr double kThreshold = 4e-6;   // seen with certainty from twice this signal on
  const double signal = hit.reflectivity * std::max(hit.cos_incidence, 0.01) / (hit.t * hit.t);
  return random.uniform() > kStray && random.uniform() * 2 * kThreshold < signal;
}

Return measure(const Hit& hit, const SensorModel& sensor, Random& random) {
  if (hit.lost || !noticed(hit, random)) return {};
  const double range = hit.t + sensor.range_deviation_m * random.normal();
  if (range < sensor.min_range_m || range > sensor.max_range_m) return {};
  const double facing = 0.45 + 0.55 * std::clamp(hit.cos_incidence, 0.0, 1.0);
  const double faded = 1 / (1 + (range / 90) * (range / 90));
  const double intensity = hit.reflectivity * facing * faded + 0.03 * random.normal();
  return {static_cast<float>(range), static_cast<float>(std::clamp(intensity, 0.0, 1.0)),
          hit.label};
}

}   // namespace

Vec3 firing_direction(const SensorModel& sensor, int column, int laser) {
  const double azimuth = std::numbers::pi - kTurn * (column + 0.5) / sensor.columns;
  const double elevation =
      sensor.elevations_deg[static_cast<std::size_t>(laser)] * std::numbers::pi / 180;
  const double across = std::cos(elevation);
  return {across * std::cos(azimuth), across * std::sin(azimuth), std::sin(elevation)};
}

void scan(const Scene& scene, const SensorModel& sensor, const Pose& pose, double t,
          std::uint64_t noise_seed, std::span<Return> returns) {
  std::vector<Shape> shapes = scene.shapes();
  for (Shape& shape : shapes) {
    shape.centre.x += shape.velocity.x * t;
    shape.centre.y += shape.velocity.y * t;
  }
  const auto columns = sort_into_columns(shapes, sensor, pose);
  const auto lasers = static_cast<int>(sensor.elevations_deg.size());
  const double cos_yaw = std::cos(pose.yaw), sin_yaw = std::sin(pose.yaw);

  parallel_for(sensor.columns, kColumnsPerChunk, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Candidate> candidates;
    for (std::int64_t column = begin; column < end; ++column) {
      for (int laser = 0; laser < lasers; ++laser) {
        const Vec3 d = firing_direction(sensor, static_cast<int>(column), laser);
        const Ray ray{pose.position,
                      {cos_yaw * d.x - sin_yaw * d.y, sin_yaw * d.x + cos_yaw * d.y, d.z}};
        const double across = std::sqrt(d.x * d.x + d.y * d.y);
        if (laser == 0) {
          find_candidates(shapes, columns[static_cast<std::size_t>(column)], pose,
                          {ray.direction.x / across, ray.direction.y / across}, candidates);
        }
        const std::int64_t firing = column * lasers + laser;
        if (hidden_by_roof(d)) {
          returns[static_cast<std::size_t>(firing)] = {};
          continue;
        }
        const auto stream = static_cast<std::uint64_t>(firing) << 20;
        Hit hit;
        hit.t = sensor.max_range_m + 1;
        bool met = false;
        for (const Candidate& candidate : candidates) {
          const double near = candidate.near / across;
          if (near > hit.t) break;
          const Shape& shape = shapes[static_cast<std::size_t>(candidate.shape)];
          const double z_near = ray.origin.z + ray.direction.z * near;
          const double z_far = ray.origin.z + ray.direction.z * candidate.far / across;
          if (std::max(z_near, z_far) < shape.z_low || std::min(z_near, z_far) > shape.z_high) {
            continue;
          }
          const auto own = static_cast<std::uint64_t>(candidate.shape) + 1;
          met |= intersect(ray, shape, Random(noise_seed, stream + own), hit);
        }
        met |= scene.ground().intersect(ray, hit);
        Random random(noise_seed, stream);
        returns[static_cast<std::size_t>(firing)] = met ? measure(hit, sensor, random) : Return{};
      }
    }
  });
}

}   // namespace pumice::simulation
