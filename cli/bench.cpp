// `pumice bench`: how fast layers, maps and networks are here, as a table and as CSV.
#include <algorithm>
#include <array>
#include <functional>
#include <memory>
#include <span>
#include <tuple>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <pumice/coords/set_operations.hpp>
#include <pumice/core/atomic_file.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/points/simulate.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "streets.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct BenchArguments {
  std::string what = "layers";
  std::string scan;
  ScanArguments reading;
  VoxelArguments voxels;
  std::vector<std::string> networks;
  std::vector<std::int64_t> channels{32, 64, 96, 128};
  int levels = 3;
  std::string precision = "f32";
  int repeat = 5;
  std::string csv;
  bool json = false;
};

/// One measured thing: the median of `repeat` runs after one that warms up, and their extremes.
struct Measurement {
  std::string name{};
  std::string plan{};
  std::int64_t rows = 0;
  std::int64_t pairs = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  double median_ms = 0;
  double min_ms = 0;
  double max_ms = 0;
  double gflop = 0;
};

void time_into(Measurement& measurement, int repeat, const std::function<void()>& call) {
  const Spread ms = measure(repeat, {}, call);
  measurement.median_ms = ms.median;
  measurement.min_ms = ms.min;
  measurement.max_ms = ms.max;
}

/// The scan named, or a simulated one.
PointCloud bench_cloud(const BenchArguments& arguments) {
  if (!arguments.scan.empty()) return arguments.reading.read(arguments.scan);
  return simulate({.seed = 1});
}

std::vector<Measurement> bench_layers(const BenchArguments& arguments) {
  const PointCloud cloud = bench_cloud(arguments);
  const DType dtype = parse_dtype(arguments.precision);
  const VoxelOptions options = arguments.voxels.options({.size = {0.05f, 0.05f, 0.05f}});
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  std::vector<Measurement> results;
  const Tensor features = point_features(cloud);
  {
    Measurement measurement{.name = "voxelize", .rows = cloud.size()};
    time_into(measurement, arguments.repeat, [&] { (void)voxelize(cloud, features, options); });
    results.push_back(measurement);
  }
  const Voxels voxels = voxelize(cloud, features, options);
  CoordinateSetPtr level = voxel_set(voxels, 1);
  {
    // With "map level 0": what a map costs whoever has int32 coordinates and nothing else.
    Measurement measurement{.name = "coordinates level 0", .rows = level->size()};
    time_into(measurement, arguments.repeat, [&] { (void)voxel_set(voxels, 1); });
    results.push_back(measurement);
  }
  for (int k = 0; k < arguments.levels; ++k) {
    if (k > 0) level = coarsen(*level, axes(3, 2));
    const KernelMapPtr map = submanifold_map(level, window);
    Measurement common{.rows = level->size(), .pairs = map->pairs()};
    Measurement building = common;
    building.name = fmt::format("map level {}", k);
    time_into(building, arguments.repeat, [&] { (void)submanifold_map(level, window); });
    results.push_back(building);
    for (const std::int64_t channels : arguments.channels) {
      const Tensor x = random_tensor({level->size(), channels}, dtype, 1);
      const Tensor weight = random_tensor({window.volume(), channels, channels}, dtype, 2);
      const ConvolutionOptions conv;
      const auto measure = [&](const char* name, const ConvolutionProblem& problem,
                               const std::function<Tensor()>& body) {
        Measurement measurement = common;
        measurement.name = fmt::format("{} level {}", name, k);
        measurement.in_channels = measurement.out_channels = channels;
        measurement.gflop = 2e-9 * static_cast<double>(map->pairs() * channels * channels);
        time_into(measurement, arguments.repeat, [&] { (void)body(); });
        measurement.plan = plan_of(problem, map->view())->name();
        results.push_back(measurement);
      };
      measure("forward", convolution_problem(x, weight, map->view(), conv),
              [&] { return convolution(x, weight, map->view(), conv); });
      measure("input gradient", convolution_input_gradient_problem(x, weight, map->view(), conv),
              [&] { return convolution_input_gradient(x, weight, map->view(), conv); });
      measure("weight gradient", convolution_weight_gradient_problem(x, x, map->view(), conv),
              [&] { return convolution_weight_gradient(x, x, map->view(), conv); });
    }
  }
  return results;
}

std::vector<Measurement> bench_networks(const BenchArguments& arguments) {
  const PointCloud cloud = bench_cloud(arguments);
  const Tensor features = point_features(cloud);
  const DType dtype = parse_dtype(arguments.precision);
  std::vector<Measurement> results;
  for (const nn::NetworkInfo& info : nn::networks()) {
    const auto& wanted = arguments.networks;
    if (!wanted.empty() && std::find(wanted.begin(), wanted.end(), info.name) == wanted.end())
      continue;
    const Voxels voxels = voxelize(cloud, features, arguments.voxels.options(info));
    const Tensor values = voxels.features.to(dtype);
    const auto network = nn::make_network(info.name);
    network->to(dtype);
    network->eval();
    nn::fold(*network);
    nn::Profile profile;
    Measurement measurement{.name = std::string(info.name), .rows = voxels.size()};
    time_into(measurement, arguments.repeat, [&] {
      profile = nn::Profile{};
      nn::Context context;
      context.profile = &profile;
      nn::SparseTensor input(voxel_set(voxels, 1, arguments.voxels.grid(info)), values);
      (void)network->forward(std::move(input), context);
    });
    measurement.gflop = profile.gflop();
    for (const nn::LayerRecord& layer : profile.layers)
      measurement.pairs += layer.pairs;
    measurement.in_channels = info.in_channels;
    results.push_back(measurement);
    Measurement maps{.name = fmt::format("{} maps (last run)", info.name), .rows = voxels.size()};
    maps.median_ms = maps.min_ms = maps.max_ms = profile.map_ms();
    results.push_back(maps);
  }
  return results;
}

/// Copies double as long as they fit: voxelisation, the map of level 0, and one 3x3x3 layer of 32
/// channels.
std::vector<Measurement> bench_scaling(const BenchArguments& arguments) {
  const PointCloud cloud = bench_cloud(arguments);
  const Streets streets(cloud, arguments.voxels.options({.size = {0.05f, 0.05f, 0.05f}}));
  PUMICE_EXPECTS(streets.voxels() > 0, "bench scaling: of the ", counted(cloud.size(), "point"),
                 " of ",
                 arguments.scan.empty() ? "the simulated scan" : printable_path(arguments.scan),
                 " none lies in a voxel; give a scan with points, and a --range that holds some");
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  const Tensor weight = random_tensor({window.volume(), 32, 32}, DType::f32, 2);
  std::vector<Measurement> results;
  for (std::int64_t copies = 1; copies == 1 || streets.fit(copies); copies *= 2) {
    const PointCloud many = streets.points_of(copies);
    const Tensor many_features = point_features(many);
    const CoordinateSetPtr set = streets.set_of(copies);
    const KernelMapPtr map = submanifold_map(set, window);
    const Tensor x = random_tensor({set->size(), 32}, DType::f32, 1);
    const auto measure = [&](const char* name, const std::function<void()>& body) {
      Measurement measurement{.name = name, .rows = set->size(), .pairs = map->pairs()};
      time_into(measurement, arguments.repeat, body);
      results.push_back(measurement);
    };
    measure("voxelize", [&] { (void)voxelize(many, many_features, streets.options()); });
    measure("map", [&] { (void)submanifold_map(set, window); });
    measure("forward 32 > 32", [&] { (void)convolution(x, weight, map->view()); });
    results.back().gflop = 2e-9 * static_cast<double>(map->pairs() * 32 * 32);
    results.back().in_channels = results.back().out_channels = 32;
  }
  return results;
}

void write_csv(const std::string& path, const std::vector<Measurement>& results) {
  std::string text =
      "name,rows,pairs,in_channels,out_channels,median_ms,min_ms,max_ms,gflop_per_s,plan\n";
  for (const Measurement& m : results) {
    text += fmt::format("{},{},{},{},{},{:.4f},{:.4f},{:.4f},{:.2f},{}\n", m.name, m.rows, m.pairs,
                        m.in_channels, m.out_channels, m.median_ms, m.min_ms, m.max_ms,
                        m.gflop / m.median_ms * 1e3, m.plan);
  }
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

void print_table(const std::vector<Measurement>& results) {
  Table table(
      {"<what", "rows", "pairs", "channels", "median ms", "min", "max", "GFLOP/s", "<plan"});
  for (const Measurement& m : results) {
    table.add({m.name, with_commas(m.rows), m.pairs > 0 ? with_commas(m.pairs) : "",
               m.out_channels > 0 ? fmt::format("{} > {}", m.in_channels, m.out_channels) : "",
               fmt::format("{:.3f}", m.median_ms), fmt::format("{:.3f}", m.min_ms),
               fmt::format("{:.3f}", m.max_ms),
               m.gflop > 0 ? fmt::format("{:.1f}", m.gflop / m.median_ms * 1e3) : "", m.plan});
  }
  fmt::print("{}", table.text());
}

/// UserError for an option that what is measured has no use for.
void check_used(const CLI::App& command, const std::string& what) {
  struct Use {
    const char* option;
    std::string_view by;
  };
  constexpr std::array kUses{Use{"--network", "networks"}, Use{"--channels", "layers"},
                             Use{"--levels", "layers"}, Use{"--precision", "layers or networks"}};
  for (const Use& use : kUses) {
    PUMICE_EXPECTS(command.count(use.option) == 0 || use.by.find(what) != std::string_view::npos,
                   use.option, ": bench ", what, " has no use for it; leave it out, or measure ",
                   use.by);
  }
  PUMICE_EXPECTS(
      command.count("--layout") == 0 || command.count("--scan") > 0,
      "--layout says how a scan is read, and none is named; leave it out, or give --scan");
}

void bench(const BenchArguments& arguments) {
  PUMICE_EXPECTS(arguments.repeat >= 1, "--repeat = ", arguments.repeat, ": ask for at least 1");
  PUMICE_EXPECTS(arguments.levels >= 1 && arguments.levels <= 31, "--levels = ", arguments.levels,
                 ": ask for 1 to 31");
  for (const std::int64_t channels : arguments.channels) {
    PUMICE_EXPECTS(channels >= 1 && channels <= kMostChannels, "--channels ", channels,
                   ": a layer has 1 to ", kMostChannels);
  }
  for (const std::string& name : arguments.networks)
    (void)nn::find_network(name);   // refuses what is none
  check_outputs({arguments.scan}, {{"--csv", arguments.csv, Format::table}});
  const std::vector<Measurement> results = arguments.what == "layers" ? bench_layers(arguments)
                                           : arguments.what == "networks"
                                               ? bench_networks(arguments)
                                               : bench_scaling(arguments);
  if (!arguments.csv.empty()) write_csv(arguments.csv, results);
  if (arguments.json) {
    auto list = nlohmann::ordered_json::array();
    for (const Measurement& m : results) {
      list.push_back({{"name", m.name},
                      {"rows", m.rows},
                      {"pairs", m.pairs},
                      {"in_channels", m.in_channels},
                      {"out_channels", m.out_channels},
                      {"median_ms", m.median_ms},
                      {"min_ms", m.min_ms},
                      {"max_ms", m.max_ms},
                      {"gflop", m.gflop},
                      {"plan", m.plan}});
    }
    print_json(nlohmann::ordered_json{{"threads", threads()}, {"measurements", list}});
    return;
  }
  fmt::print("{}, {}, median of {} after one warm-up\n\n", counted(threads(), "thread"),
             arguments.precision, arguments.repeat);
  print_table(results);
}

}   // namespace

void add_bench_command(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure layers, networks, or how time grows with voxels");
  command->add_option("WHAT", arguments->what, "layers, networks or scaling")
      ->check(CLI::IsMember({"layers", "networks", "scaling"}))
      ->capture_default_str();
  command->add_option("--scan", arguments->scan,
                      "The scan to measure on (default: a simulated one)");
  arguments->reading.add_to(*command);
  arguments->voxels.add_to(*command);
  command->add_option("--network", arguments->networks, "networks: only these")->delimiter(',');
  take_numbers(command->add_option("--channels", arguments->channels, "layers: their channels"),
               "--channels 32 64")
      ->capture_default_str();
  command->add_option("--levels", arguments->levels, "layers: levels, each halves the coordinates")
      ->capture_default_str();
  add_precision(*command, arguments->precision, "layers and networks", false);
  command->add_option("--repeat", arguments->repeat, "Runs counted")->capture_default_str();
  command->add_option("--csv", arguments->csv, "Also write the table here");
  add_threads(*command);
  add_json(*command, arguments->json);
  add_bench_sparse_command(*command);
  add_bench_driving_command(*command);
  command->callback([arguments, command] {
    if (!command->get_subcommands().empty()) return;   // which has measured
    check_used(*command, arguments->what);
    bench(*arguments);
  });
}

}   // namespace pumice::cli
