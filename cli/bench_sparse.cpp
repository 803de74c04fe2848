// `pumice bench sparse`: how fast sparse matrices and graphs are here, beside what memory allows.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/graphs/generate.hpp>

#include "arguments.hpp"
#include "bench_sparse_calls.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "options.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct SparseBenchArguments : SparseBenchOptions {
  std::vector<std::string> inputs;
  std::int64_t nodes = 169'343;
  std::int64_t edges = 1'166'243;
  std::string device = "cpu";
  bool json = false;
};

/// All that are asked for, read before the first is measured.
std::vector<EdgesInput> inputs_of(const SparseBenchArguments& arguments) {
  std::vector<EdgesInput> inputs;
  for (const std::string& path : arguments.inputs)
    inputs.push_back(read_edges(path));
  if (!inputs.empty()) return inputs;
  const PowerLawOptions options{.nodes = arguments.nodes, .edges = arguments.edges, .seed = 1};
  inputs.push_back(edges_of("power law", arguments.nodes, power_law_edges(options)));
  return inputs;
}

void print_table(const EdgesInput& edges, const std::vector<SparseFigure>& figures) {
  fmt::print("\n{}: {} x {}, {}{}, longest row {}\n\n", edges.name, with_commas(edges.rows),
             with_commas(edges.columns), counted(edges.entries(), "entry", "entries"),
             edges.has_types() ? " of " + counted(edges.relations, "relation") : "",
             with_commas(longest(row_lengths(edges))));
  Table table(
      {"<call", "<type", "channels", "median ms", "min", "max", "gathered GB/s", "as a copy, ms"});
  for (const SparseFigure& figure : figures) {
    const bool gathers = figure.gathered_bytes > 0;
    table.add({figure.call, figure.precision,
               figure.channels > 0 ? std::to_string(figure.channels) : "",
               fmt::format("{:.4f}", figure.ms.median), fmt::format("{:.4f}", figure.ms.min),
               fmt::format("{:.4f}", figure.ms.max),
               gathers ? fmt::format("{:.2f}", figure.gathered_gb_per_s()) : "",
               gathers ? fmt::format("{:.4f}", figure.copy_ms) : ""});
  }
  fmt::print("{}", table.text());
}

nlohmann::ordered_json to_json(const EdgesInput& edges, const std::vector<SparseFigure>& figures) {
  auto list = nlohmann::ordered_json::array();
  for (const SparseFigure& figure : figures) {
    list.push_back({{"call", figure.call},
                    {"precision", figure.precision},
                    {"channels", figure.channels},
                    {"median_ms", figure.ms.median},
                    {"min_ms", figure.ms.min},
                    {"max_ms", figure.ms.max},
                    {"gathered_bytes", figure.gathered_bytes},
                    {"gathered_gb_per_s", figure.gathered_gb_per_s()},
                    {"copy_ms", figure.copy_ms}});
  }
  return {{"name", edges.name},           {"rows", edges.rows},
          {"columns", edges.columns},     {"entries", edges.entries()},
          {"relations", edges.relations}, {"longest_row", longest(row_lengths(edges))},
          {"measurements", list}};
}

void bench_sparse(const SparseBenchArguments& arguments) {
  PUMICE_EXPECTS(arguments.repeat >= 1, "--repeat = ", arguments.repeat, ": ask for at least 1");
  for (const std::int64_t channels : arguments.channels) {
    PUMICE_EXPECTS(channels >= 1 && channels <= kMostChannels, "--channels ", channels,
                   ": features have 1 to ", kMostChannels);
  }
  const Device device = parse_device(arguments.device);
  for (const std::string& precision : arguments.precisions)
    (void)parse_precision(precision, device);   // refuses what the device does not have
  const Stream stream(device);
  const std::string model = model_of(device);
  const std::vector<EdgesInput> inputs = inputs_of(arguments);
  if (!arguments.json) {
    fmt::print("{}{}, median of {} after one warm-up\n", model,
               device.kind == DeviceKind::cpu ? ", " + counted(threads(), "thread") : "",
               arguments.repeat);
  }
  auto matrices = nlohmann::ordered_json::array();
  for (const EdgesInput& edges : inputs) {
    const std::vector<SparseFigure> figures = measure_sparse(edges, arguments, stream);
    if (arguments.json)
      matrices.push_back(to_json(edges, figures));
    else
      print_table(edges, figures);
  }
  if (!arguments.json) return;
  print_json(nlohmann::ordered_json{{"device", to_string(device)},
                                    {"model", model},
                                    {"threads", threads()},
                                    {"repeat", arguments.repeat},
                                    {"matrices", matrices}});
}

}   // namespace

void add_bench_sparse_command(CLI::App& bench) {
  const auto arguments = std::make_shared<SparseBenchArguments>();
  CLI::App* command = bench.add_subcommand(
      "sparse", "Measure products of sparse matrices and of graphs with typed edges");
  command->add_option("INPUT", arguments->inputs,
                      "Matrix Market files (.mtx), and safetensors files and folders of edges as "
                      "`pumice rgcn` "
                      "takes them (default: a generated graph)");
  const CLI::Option* nodes =
      command->add_option("--nodes", arguments->nodes, "Of the generated graph")
          ->capture_default_str();
  const CLI::Option* edges =
      command->add_option("--edges", arguments->edges, "Of the generated graph")
          ->capture_default_str();
  take_numbers(command->add_option("--channels", arguments->channels, "Of the features"),
               "--channels 32 128")
      ->capture_default_str();
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  command->add_option("--precision", arguments->precisions, "Types of the features, as in f32,f16")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember({"f32", "f64", "f16", "bf16"}))
      ->capture_default_str();
  command->add_option("--repeat", arguments->repeat, "Runs counted")->capture_default_str();
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments, nodes, edges, &bench] {
    for (const CLI::Option* option : bench.get_options()) {
      PUMICE_EXPECTS(
          option->count() == 0, option->get_name(),
          ": stands before sparse, which has no use for it there; leave it out, or write "
          "what sparse takes behind it");
    }
    for (const CLI::Option* option : {nodes, edges}) {
      PUMICE_EXPECTS(option->count() == 0 || arguments->inputs.empty(), option->get_name(),
                     " is of a generated graph, and ", printable_path(arguments->inputs.front()),
                     " is named; leave one of them out");
    }
    bench_sparse(*arguments);
  });
}

}   // namespace pumice::cli
