// `pumice simulate`: a street nobody has driven, scanned.
#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/write.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct SimulateArguments {
  std::uint64_t seed = 0;
  int beams = 64;
  std::string sensor;   // empty: that of so many beams
  int sweeps = 1;
  std::string out;
  bool json = false;
};

void simulate_scan(const SimulateArguments& arguments) {
  check_outputs({}, {{"--out", arguments.out, Format::sweep}});
  SimulationOptions options;
  options.seed = arguments.seed;
  options.sensor = SensorModel::named(
      arguments.sensor.empty() ? fmt::format("beams{}", arguments.beams) : arguments.sensor);
  const auto beams = static_cast<std::int64_t>(options.sensor.elevations_deg.size());
  options.sweeps = arguments.sweeps;
  const PointCloud cloud = simulate(options);
  write_ply(arguments.out, cloud);
  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"points", cloud.size()},
                                      {"seed", arguments.seed},
                                      {"sensor", options.sensor.name},
                                      {"beams", beams},
                                      {"sweeps", arguments.sweeps},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} from {} in {}, written to {}\n", counted(cloud.size(), "point"),
             counted(beams, "beam"), counted(arguments.sweeps, "sweep"),
             printable_path(arguments.out));
}

}   // namespace

void add_simulate_command(CLI::App& app) {
  const auto arguments = std::make_shared<SimulateArguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "Scan a simulated street; the same seed gives the same scan");
  command->add_option("--seed", arguments->seed, "Chooses the street")
      ->check(whole_number)
      ->capture_default_str();
  const CLI::Option* beams =
      command->add_option("--beams", arguments->beams, "64 (2048 columns) or 32 (1084 columns)")
          ->check(CLI::IsMember({32, 64}))
          ->capture_default_str();
  command
      ->add_option("--sensor", arguments->sensor,
                   "Instead of --beams: beams64, beams32, or waymo64 (64 beams from +2.4 to -17.6 "
                   "degrees, 2650 columns)")
      ->check(CLI::IsMember({"beams64", "beams32", "waymo64"}));
  command->add_option("--sweeps", arguments->sweeps, "Turns of the sensor, brought into one frame")
      ->capture_default_str();
  command
      ->add_option(
          "--out", arguments->out,
          "The .ply file to write: x y z, intensity, ring, label; with several sweeps also time")
      ->required();
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, beams] {
    PUMICE_EXPECTS(beams->count() == 0 || arguments->sensor.empty(), "--beams ", arguments->beams,
                   " and --sensor ", arguments->sensor, ": give one of them");
    simulate_scan(*arguments);
  });
}

}   // namespace pumice::cli
