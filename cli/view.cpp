// `pumice view`: a picture of a scan.
#include <memory>

#include <fmt/core.h>

#include <pumice/points/read.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "picture.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct ViewArguments {
  std::string scan;
  std::string picture;
  std::string colour = "height";
  std::string labels;
  std::vector<int> size{1600, 900};
  ScanArguments reading;
  bool json = false;
};

ColourBy parse_colour(const std::string& name) {
  if (name == "intensity") return ColourBy::intensity;
  return name == "label" ? ColourBy::label : ColourBy::height;
}

void view(const ViewArguments& arguments) {
  check_outputs({arguments.scan, arguments.labels}, {arguments.picture});
  check_ending("--picture", arguments.picture, ".png", "a picture");
  PUMICE_EXPECTS(arguments.labels.empty() || arguments.colour == "label", "--colour ",
                 arguments.colour, " shows none of --labels ", arguments.labels,
                 "; leave one of them out");
  PointCloud cloud = arguments.reading.read(arguments.scan);
  if (!arguments.labels.empty()) {
    cloud.labels = read_labels(arguments.labels);
    PUMICE_EXPECTS(cloud.labels.rows() == cloud.size(), "--labels ", arguments.labels, ": ",
                   cloud.labels.rows(), " labels for ", cloud.size(),
                   " points; give the labels of this scan");
  }
  PictureOptions options;
  options.width = arguments.size[0];
  options.height = arguments.size[1];
  options.by = parse_colour(arguments.colour);
  PUMICE_EXPECTS(options.by != ColourBy::intensity || cloud.intensity.defined(),
                 "--colour intensity: ", arguments.scan, " has no intensity; use height");
  PUMICE_EXPECTS(options.by != ColourBy::label || cloud.labels.defined(),
                 "--colour label: ", arguments.scan, " has no labels; give --labels or use height");
  options.caption =
      fmt::format("{}: {} points by {}", std::filesystem::path(arguments.scan).filename().string(),
                  with_commas(cloud.size()), arguments.colour);
  write_png(arguments.picture, render(cloud, {}, options));
  if (arguments.json) {
    fmt::print("{}\n", nlohmann::ordered_json{{"points", cloud.size()},
                                              {"dropped_points", cloud.dropped_points},
                                              {"picture", arguments.picture}}
                           .dump());
    return;
  }
  fmt::print("picture of {} points{} written to {}\n", with_commas(cloud.size()),
             dropped_text(cloud.dropped_points), arguments.picture);
}

}   // namespace

void add_view_command(CLI::App& app) {
  const auto arguments = std::make_shared<ViewArguments>();
  CLI::App* command = app.add_subcommand("view", "Draw a scan from above and in perspective");
  command->add_option("SCAN", arguments->scan, "A .bin, .pcd.bin, .pcd, .ply, .npy or .npz file")
      ->required();
  command->add_option("--picture", arguments->picture, "The PNG to write")->required();
  const CLI::Option* colour = command->add_option("--colour,--color", arguments->colour)
                                  ->check(CLI::IsMember({"height", "intensity", "label"}))
                                  ->capture_default_str();
  command->add_option("--labels", arguments->labels, "A SemanticKITTI .label file to colour by");
  command->add_option("--size", arguments->size, "Width and height in pixels")
      ->expected(2)
      ->capture_default_str();
  arguments->reading.add_to(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, colour] {
    if (colour->count() == 0 && !arguments->labels.empty()) arguments->colour = "label";
    view(*arguments);
  });
}

}   // namespace pumice::cli
