// `pumice bench driving`: networks of seven driving benchmarks, from voxels to scores, layer by
// layer and as one graph.
#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/stream.hpp>

#include "arguments.hpp"
#include "bench_driving_passes.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "driving_input.hpp"
#include "driving_workloads.hpp"
#include "measure.hpp"
#include "options.hpp"
#include "outputs.hpp"
#include "statistics.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct DrivingArguments {
  std::vector<std::string> workloads;
  std::string scan;
  std::string device = "cpu";
  std::vector<std::string> precisions;
  std::string size = "full";
  std::uint64_t seed = 0;
  DrivingPasses passes;
  std::string csv;
  bool list = false;
  bool json = false;
};

struct Measured {
  const DrivingWorkload* work = nullptr;
  std::int64_t voxels = 0;
  std::string source;
  std::vector<DrivingFigure> figures{};
};

std::pair<double, double> ends(const std::vector<double>& values) {
  const auto [least, most] = std::ranges::minmax(values);
  return {least, most};
}

double median_or_zero(const std::vector<double>& values) {
  return values.empty() ? 0 : median(values);
}

void print_table(const std::vector<Measured>& all) {
  Table table({"<workload", "voxels", "<input", "<type", "<way", "ms", "min", "max", "host ms",
               "device ms", "peak MiB"});
  for (const Measured& one : all) {
    for (const DrivingFigure& figure : one.figures) {
      const auto [least, most] = ends(figure.rounds.whole);
      table.add(
          {std::string(one.work->name), with_commas(one.voxels), one.source, figure.precision,
           figure.way, fmt::format("{:.3f}", median(figure.rounds.whole)),
           fmt::format("{:.3f}", least), fmt::format("{:.3f}", most),
           fmt::format("{:.3f}", median(figure.rounds.host)),
           figure.rounds.device.empty() ? "" : fmt::format("{:.3f}", median(figure.rounds.device)),
           fmt::format("{:.1f}", static_cast<double>(figure.peak_bytes) / (1 << 20))});
    }
  }
  fmt::print("{}", table.text());
}

nlohmann::ordered_json to_json(const std::vector<Measured>& all) {
  auto list = nlohmann::ordered_json::array();
  for (const Measured& one : all) {
    for (const DrivingFigure& figure : one.figures) {
      const auto [least, most] = ends(figure.rounds.whole);
      list.push_back({{"workload", one.work->name},
                      {"input", one.source},
                      {"voxels", one.voxels},
                      {"precision", figure.precision},
                      {"way", figure.way},
                      {"ms", median(figure.rounds.whole)},
                      {"min_ms", least},
                      {"max_ms", most},
                      {"host_ms", median(figure.rounds.host)},
                      {"device_ms", median_or_zero(figure.rounds.device)},
                      {"peak_bytes", figure.peak_bytes}});
    }
  }
  return list;
}

void write_csv(const std::string& path, const std::vector<Measured>& all) {
  std::string text =
      "workload,input,voxels,precision,way,ms,min_ms,max_ms,host_ms,device_ms,peak_bytes\n";
  for (const auto& row : to_json(all)) {
    text += fmt::format("{},\"{}\",{},{},\"{}\",{:.4f},{:.4f},{:.4f},{:.4f},{:.4f},{}\n",
                        row["workload"].get<std::string>(), row["input"].get<std::string>(),
                        row["voxels"].get<std::int64_t>(), row["precision"].get<std::string>(),
                        row["way"].get<std::string>(), row["ms"].get<double>(),
                        row["min_ms"].get<double>(), row["max_ms"].get<double>(),
                        row["host_ms"].get<double>(), row["device_ms"].get<double>(),
                        row["peak_bytes"].get<std::int64_t>());
  }
  AtomicFile file(path);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
}

nlohmann::ordered_json table_of_workloads() {
  auto list = nlohmann::ordered_json::array();
  for (const DrivingWorkload& work : driving_workloads()) {
    nlohmann::ordered_json row{{"name", work.name},
                               {"dataset", work.dataset},
                               {"sensor", work.sensor},
                               {"sweeps", work.sweeps},
                               {"voxel", work.voxel},
                               {"range", nullptr},
                               {"grid", nullptr},
                               {"most_voxels", work.most_voxels},
                               {"in_channels", work.in_channels},
                               {"network", work.network},
                               {"width_factor", work.width_factor},
                               {"classes", work.classes},
                               {"training_batch", work.training_batch}};
    if (work.range) row["range"] = *work.range;
    if (work.grid) row["grid"] = std::vector(work.grid->begin(), work.grid->begin() + 3);
    list.push_back(std::move(row));
  }
  return list;
}

void list_workloads(bool json) {
  if (json) return print_json({{"workloads", table_of_workloads()}});
  Table table({"<workload", "<scans", "<sensor", "sweeps", "<voxel, m", "most voxels", "channels",
               "<network", "widths"});
  for (const DrivingWorkload& work : driving_workloads()) {
    table.add({std::string(work.name), std::string(work.dataset), std::string(work.sensor),
               std::to_string(work.sweeps),
               fmt::format("{:g} {:g} {:g}", work.voxel[0], work.voxel[1], work.voxel[2]),
               work.most_voxels > 0 ? with_commas(work.most_voxels) : "",
               std::to_string(work.in_channels), std::string(work.network),
               work.classes > 0 ? fmt::format("driving x {:g}", work.width_factor) : "its own"});
  }
  fmt::print("{}", table.text());
}

std::vector<const DrivingWorkload*> wanted(const DrivingArguments& arguments) {
  std::vector<const DrivingWorkload*> works;
  for (const std::string& name : arguments.workloads)
    works.push_back(&find_driving_workload(name));
  if (!works.empty()) return works;
  for (const DrivingWorkload& work : driving_workloads())
    works.push_back(&work);
  return works;
}

void bench_driving(const DrivingArguments& arguments) {
  if (arguments.list) return list_workloads(arguments.json);
  PUMICE_EXPECTS(arguments.passes.rounds >= 1, "--rounds = ", arguments.passes.rounds,
                 ": ask for at least 1");
  PUMICE_EXPECTS(arguments.passes.repeat >= 1, "--repeat = ", arguments.passes.repeat,
                 ": ask for at least 1");
  const std::vector<const DrivingWorkload*> works = wanted(arguments);
  PUMICE_EXPECTS(arguments.scan.empty() || works.size() == 1, "--scan ",
                 printable_path(arguments.scan),
                 " is one scan of one sensor; add --workload with the one to measure on it");
  check_outputs({arguments.scan}, {{"--csv", arguments.csv, Format::table}});
  const Device device = parse_device(arguments.device);
  std::vector<std::string> precisions = arguments.precisions;
  if (precisions.empty()) precisions.emplace_back(device.kind == DeviceKind::cpu ? "f32" : "f16");
  for (const std::string& precision : precisions)
    (void)parse_precision(precision, device);   // refuses what the device does not have
  PUMICE_EXPECTS(!arguments.passes.ablation || device.kind != DeviceKind::cpu,
                 "--ablation: what is switched off are parts of graphs, which need a GPU; add "
                 "--device cuda");
  const Stream stream(device);
  const std::string model = model_of(device);
  DrivingPasses passes = arguments.passes;
  passes.size = arguments.size == "tiny" ? DrivingSize::tiny : DrivingSize::full;
  std::vector<Measured> all;
  for (const DrivingWorkload* work : works) {
    const DrivingInput input = driving_input(*work, arguments.scan, passes.size, arguments.seed);
    Measured one{.work = work, .voxels = input.coordinates.rows(), .source = input.source};
    for (const std::string& precision : precisions) {
      for (DrivingFigure& figure : measure_workload(*work, input, precision, passes, stream))
        one.figures.push_back(std::move(figure));
    }
    all.push_back(std::move(one));
  }
  if (!arguments.csv.empty()) write_csv(arguments.csv, all);
  if (arguments.json) {
    return print_json({{"device", to_string(device)},
                       {"model", model},
                       {"threads", threads()},
                       {"size", arguments.size},
                       {"rounds", arguments.passes.rounds},
                       {"repeat", arguments.passes.repeat},
                       {"measurements", to_json(all)}});
  }
  fmt::print("{}{}, batch of 1, median of {} of {}{}\n\n", model,
             device.kind == DeviceKind::cpu ? ", " + counted(threads(), "thread") : "",
             counted(arguments.passes.rounds, "round"),
             counted(arguments.passes.repeat, "pass", "passes"),
             arguments.size == "tiny" ? "; tiny, for tests: no figures of the benchmarks" : "");
  print_table(all);
}

}   // namespace

void add_bench_driving_command(CLI::App& bench) {
  const auto arguments = std::make_shared<DrivingArguments>();
  CLI::App* command = bench.add_subcommand(
      "driving", "Measure inference of the networks of seven driving benchmarks");
  command->add_option("--workload", arguments->workloads, "Only these; --list names them")
      ->delimiter(',')
      ->allow_extra_args(false);
  command->add_option("--scan", arguments->scan,
                      "The scan of one workload, with all its sweeps (default: one below "
                      "PUMICE_DATA, or a simulated one)");
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  command
      ->add_option("--precision", arguments->precisions,
                   "Types of the features, as in f16,tf32 (default: f32 on the CPU, f16 on a "
                   "device)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"f32", "f16", "bf16", "tf32"}));
  command->add_option("--size", arguments->size, "full, or tiny: a few voxels, for tests")
      ->check(CLI::IsMember({"full", "tiny"}))
      ->capture_default_str();
  command
      ->add_option("--seed", arguments->seed,
                   "Chooses the street, and which voxels are left out above a limit")
      ->check(whole_number)
      ->capture_default_str();
  command->add_option("--rounds", arguments->passes.rounds, "In which the ways to run take turns")
      ->capture_default_str();
  command->add_option("--repeat", arguments->passes.repeat, "Passes of a way in a round")
      ->capture_default_str();
  command->add_flag("--ablation", arguments->passes.ablation,
                    "On a CUDA device: graphs without shared cuts and of one dataflow, too");
  command->add_option("--csv", arguments->csv, "Also write the table here");
  command->add_flag("--list", arguments->list, "Print the workloads, and measure nothing");
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, &bench] {
    for (const CLI::Option* option : bench.get_options()) {
      PUMICE_EXPECTS(
          option->count() == 0, option->get_name(),
          ": stands before driving, which has no use for it there; leave it out, or write "
          "what driving takes behind it");
    }
    bench_driving(*arguments);
  });
}

}   // namespace pumice::cli
