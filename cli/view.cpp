// `pumice view`: a picture of a scan, and a page to look at it from all sides.
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "page.hpp"
#include "picture.hpp"
#include "picture_size.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct ViewArguments {
  std::string scan;
  std::string picture;
  std::string html;
  std::string colour = "height";
  std::string labels;
  PictureSize size;
  ScanArguments reading;
  bool json = false;
};

ColourBy parse_colour(const std::string& name) {
  if (name == "intensity") return ColourBy::intensity;
  return name == "label" ? ColourBy::label : ColourBy::height;
}

void view(const ViewArguments& arguments) {
  PUMICE_EXPECTS(!arguments.picture.empty() || !arguments.html.empty(),
                 "view: nothing is asked for; give --picture FILE.png, --html FILE.html or both");
  check_outputs({arguments.scan, arguments.labels},
                {{"--picture", arguments.picture, Format::picture},
                 {"--html", arguments.html, Format::page}});
  arguments.size.check(arguments.picture);
  PUMICE_EXPECTS(arguments.labels.empty() || arguments.colour == "label", "--colour ",
                 arguments.colour, " shows none of --labels ", printable_path(arguments.labels),
                 "; leave one of them out");
  PointCloud cloud = arguments.reading.read(arguments.scan);
  if (!arguments.labels.empty()) replace_labels(cloud, arguments.labels, arguments.scan);
  PictureOptions options;
  arguments.size.set(options);
  options.by = parse_colour(arguments.colour);
  PUMICE_EXPECTS(options.by != ColourBy::intensity || cloud.intensity.defined(),
                 "--colour intensity: ", printable_path(arguments.scan),
                 " has no intensity; use height");
  PUMICE_EXPECTS(options.by != ColourBy::label || cloud.labels.defined(),
                 "--colour label: ", printable_path(arguments.scan),
                 " has no labels; give --labels or use height");
  const std::string name = printable(std::filesystem::path(arguments.scan).filename().string());
  options.caption =
      fmt::format("{}: {} by {}", name, counted(cloud.size(), "point"), arguments.colour);
  nlohmann::ordered_json said{{"points", cloud.size()}, {"dropped_points", cloud.dropped_points}};
  const auto write = [&](const char* what, const std::string& path, const auto& write_it) {
    if (path.empty()) return;
    write_it();
    said[what] = path;
    if (arguments.json) return;
    fmt::print("{} of {}{} written to {}\n", what, counted(cloud.size(), "point"),
               dropped_text(cloud.dropped_points), printable_path(path));
  };
  // Both are made before either is written: nothing is left of a command that fails halfway.
  const Image image = arguments.picture.empty() ? Image{} : render(cloud, {}, options);
  const std::string html = arguments.html.empty() ? "" : page(cloud, {name, options.by});
  write("picture", arguments.picture, [&] { write_png(arguments.picture, image); });
  write("page", arguments.html, [&] { write_page(arguments.html, html); });
  if (arguments.json) print_json(said);
}

}   // namespace

void add_view_command(CLI::App& app) {
  const auto arguments = std::make_shared<ViewArguments>();
  CLI::App* command =
      app.add_subcommand("view", "Draw a scan as a picture or a page to turn it on");
  command->add_option("SCAN", arguments->scan, "A .bin, .pcd.bin, .pcd, .ply, .npy or .npz file")
      ->required();
  command->add_option("--picture", arguments->picture,
                      "The PNG to write, from above and in perspective");
  command->add_option("--html", arguments->html,
                      "The page to write, for a browser: turn, move, zoom, choose colours");
  const CLI::Option* colour = command->add_option("--colour,--color", arguments->colour)
                                  ->check(CLI::IsMember({"height", "intensity", "label"}))
                                  ->capture_default_str();
  command->add_option("--labels", arguments->labels, "A SemanticKITTI .label file to colour by");
  arguments->size.add_to(*command);
  arguments->reading.add_to(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, colour] {
    if (colour->count() == 0 && !arguments->labels.empty()) arguments->colour = "label";
    view(*arguments);
  });
}

}   // namespace pumice::cli
