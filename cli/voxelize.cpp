// `pumice voxelize`: from a scan to voxels in a safetensors file.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/safetensors.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "outputs.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct VoxelizeArguments {
  std::string scan;
  std::string out;
  ScanArguments reading;
  VoxelArguments voxels;
  bool json = false;
};

void voxelize_scan(const VoxelizeArguments& arguments) {
  check_outputs({arguments.scan}, {{"--out", arguments.out, Format::tensors}});
  const PointCloud cloud = arguments.reading.read(arguments.scan);
  const Voxels voxels = voxelize(cloud, point_features(cloud),
                                 arguments.voxels.options({.size = {0.05f, 0.05f, 0.05f}}));
  warn_of_no_voxels(cloud.size(), voxels.size());
  const std::vector<std::pair<std::string, ConstTensorView>> tensors{
      {"coords", voxels.coordinates},
      {"features", voxels.features},
      {"point_to_voxel", voxels.point_to_voxel},
      {"voxel_begin", voxels.voxel_begin},
      {"voxel_points", voxels.voxel_points}};
  write_safetensors(arguments.out, tensors);
  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"points", cloud.size()},
                                      {"dropped_points", cloud.dropped_points},
                                      {"voxels", voxels.size()},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{}{} in {}, written to {}\n", counted(cloud.size(), "point"),
             dropped_text(cloud.dropped_points), counted(voxels.size(), "voxel"),
             printable_path(arguments.out));
}

}   // namespace

void add_voxelize_command(CLI::App& app) {
  const auto arguments = std::make_shared<VoxelizeArguments>();
  CLI::App* command = app.add_subcommand(
      "voxelize",
      "Turn a scan into voxels: coords, features and the maps between points and voxels");
  command->add_option("SCAN", arguments->scan, "A .bin, .pcd.bin, .pcd, .ply, .npy or .npz file")
      ->required();
  command
      ->add_option("--out", arguments->out,
                   "The safetensors file to write; point_to_voxel is of the finite points only")
      ->required();
  arguments->reading.add_to(*command);
  arguments->voxels.add_to(*command);
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments] { voxelize_scan(*arguments); });
}

}   // namespace pumice::cli
