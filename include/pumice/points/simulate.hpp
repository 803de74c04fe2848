// A spinning LiDAR in a made-up street: point clouds of realistic size, density and labels, the
// same bits for the same seed, where no recorded scan is at hand.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/points/point_cloud.hpp>

namespace pumice {

/// A sensor with one laser per elevation, all fired once per column of a full turn.
struct SensorModel {
  std::string name;
  std::vector<double> elevations_deg;   // from the top laser down; ring r is elevations_deg[r]
  int columns = 0;                      // firings in a turn
  double min_range_m = 0;
  double max_range_m = 0;
  double height_m = 0;            // above the road
  double turns_per_s = 0;         // one sweep a turn
  double range_deviation_m = 0;   // standard deviation of one range

  /// 64 lasers from +2° to -24.8°, 2048 columns, 120 m, 1.73 m above the road, 10 turns a second.
  static SensorModel beams64();
  /// 32 lasers from +10.67° to -30.67°, 1084 columns, 105 m, 1.84 m above the road, 20 turns a
  /// second.
  static SensorModel beams32();
  /// As the sensor on the roof of the Waymo Open Dataset: 64 lasers from +2.4° to -17.6°, 2650
  /// columns, 75 m, 2.18 m above the road, 10 turns a second.
  static SensorModel waymo64();
  /// The one of these whose `name` it is; UserError that lists the names there are.
  static SensorModel named(std::string_view name);
};

struct SimulationOptions {
  std::uint64_t seed = 0;   // names the street, the traffic and the noise
  SensorModel sensor = SensorModel::beams64();
  int sweeps = 1;   // consecutive turns, 1 to 100, all brought into the frame of the last one
};

/// Scans the street that `options.seed` names. The frame is the sensor's at its last turn: x ahead,
/// y left, z up, the road at z = -height. Positions, intensity (0 to 1), labels and ring are always
/// there, time with two sweeps or more; points are ordered by sweep, oldest first, then by column,
/// then by ring. The same bits for any number of threads. UserError for options that describe no
/// sensor.
PointCloud simulate(const SimulationOptions& options);

/// The classes of SemanticKITTI, by the number a label holds.
struct LabelClass {
  std::int32_t id;
  std::string_view name;
};
std::span<const LabelClass> label_classes();
/// The name of a class, "class 17" for a number that is in no table.
std::string label_name(std::int32_t id);

}   // namespace pumice
