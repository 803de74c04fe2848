// `pumice info`: how many points, voxels and pairs a scan has, level by level.
#include <algorithm>
#include <limits>
#include <memory>

#include <fmt/core.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/coords/set_operations.hpp>
#include <pumice/maps/build.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct InfoArguments {
  std::string scan;
  ScanArguments reading;
  VoxelArguments voxels;
  int levels = 1;
  bool json = false;
};

struct Bounds {
  std::array<float, 3> low{};
  std::array<float, 3> high{};
};

Bounds bounds_of(const PointCloud& cloud) {
  Bounds bounds;
  const float* position = cloud.positions.data<float>();
  for (std::int64_t point = 0; point < cloud.size(); ++point) {
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const float value = position[point * 3 + static_cast<std::int64_t>(axis)];
      bounds.low[axis] = point == 0 ? value : std::min(bounds.low[axis], value);
      bounds.high[axis] = point == 0 ? value : std::max(bounds.high[axis], value);
    }
  }
  return bounds;
}

void info(const InfoArguments& arguments) {
  PUMICE_EXPECTS(arguments.levels >= 1 && arguments.levels <= 31, "--levels = ", arguments.levels,
                 ": ask for 1 to 31");
  const PointCloud cloud = arguments.reading.read(arguments.scan);
  const VoxelOptions options = arguments.voxels.options({.size = {0.05f, 0.05f, 0.05f}});
  const Voxels voxels = voxelize(cloud, point_features(cloud), options);
  const Bounds bounds = bounds_of(cloud);
  warn_of_no_voxels(cloud.size(), voxels.size());

  std::vector<std::int64_t> rows;
  std::vector<std::int64_t> pairs;
  CoordinateSetPtr level = voxel_set(voxels, 1);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  for (int k = 0; k < arguments.levels; ++k) {
    if (k > 0) level = coarsen(*level, axes(3, 2));
    rows.push_back(level->size());
    pairs.push_back(submanifold_map(level, window)->pairs());
  }

  if (arguments.json) {
    nlohmann::ordered_json result;
    result["points"] = cloud.size();
    result["dropped_points"] = cloud.dropped_points;
    result["bounds"] = {{"min", bounds.low}, {"max", bounds.high}};
    result["voxels"] = rows;
    result["pairs"] = pairs;
    print_json(result);
    return;
  }
  fmt::print("{}: {}{}\n", printable_path(arguments.scan), counted(cloud.size(), "point"),
             dropped_text(cloud.dropped_points));
  fmt::print("bounds in metres: x {:.2f} to {:.2f}, y {:.2f} to {:.2f}, z {:.2f} to {:.2f}\n\n",
             bounds.low[0], bounds.high[0], bounds.low[1], bounds.high[1], bounds.low[2],
             bounds.high[2]);
  Table table({"level", "voxel size (m)", "voxels", "pairs 3x3x3", "pairs/voxel"});
  for (std::size_t k = 0; k < rows.size(); ++k) {
    const float scale = static_cast<float>(std::int64_t{1} << k);
    table.add({std::to_string(k),
               fmt::format("{:g} {:g} {:g}", options.size[0] * scale, options.size[1] * scale,
                           options.size[2] * scale),
               with_commas(rows[k]), with_commas(pairs[k]),
               rows[k] == 0 ? "-"
                            : fmt::format("{:.2f}", static_cast<double>(pairs[k]) /
                                                        static_cast<double>(rows[k]))});
  }
  fmt::print("{}", table.text());
}

}   // namespace

void add_info_command(CLI::App& app) {
  const auto arguments = std::make_shared<InfoArguments>();
  CLI::App* command =
      app.add_subcommand("info", "Count the points, voxels and kernel-map pairs of a scan");
  command->add_option("SCAN", arguments->scan, "A .bin, .pcd.bin, .pcd, .ply, .npy or .npz file")
      ->required();
  arguments->reading.add_to(*command);
  arguments->voxels.add_to(*command, false);
  command->add_option("--levels", arguments->levels, "Levels to count; each halves the coordinates")
      ->capture_default_str();
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments] { info(*arguments); });
}

}   // namespace pumice::cli
