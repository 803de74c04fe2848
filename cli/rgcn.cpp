// `pumice rgcn`: a trained network of relational graph convolutions over a graph.
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <CLI/App.hpp>
#include <nlohmann/json.hpp>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/relational_network.hpp>
#include <pumice/nn/weights.hpp>

#include "arguments.hpp"
#include "commands.hpp"
#include "core/printable.hpp"
#include "graph_file.hpp"
#include "outputs.hpp"
#include "step_timer.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

struct RgcnArguments {
  std::string weights;
  std::string graph;
  std::string out;
  std::string device = "cpu";
  std::string precision;   // empty: as the weights are
  bool json = false;
};

/// What is stored, in the precision that was asked for.
Precision precision_of(const RgcnArguments& arguments, const SafetensorsFile& weights) {
  const Device device = parse_device(arguments.device);
  if (!arguments.precision.empty()) return parse_precision(arguments.precision, device);
  return parse_precision(std::string(name_of(weights.dtype("convs.0.weight"))), device);
}

/// As many as the network has numbers of, or rows of features.
std::int64_t nodes_of(const GraphInput& graph, const nn::RelationalNetworkOptions& network,
                      const std::string& path) {
  if (graph.features.defined()) {
    PUMICE_EXPECTS(graph.features.extent(1) == network.in_channels, path, ": features have ",
                   graph.features.extent(1), " channels, and the network takes ",
                   network.in_channels);
    return graph.features.rows();
  }
  PUMICE_EXPECTS(!graph.nodes || *graph.nodes == network.in_channels, path, ": has ",
                 graph.nodes.value_or(0), " nodes without features, and the network was made for ",
                 network.in_channels, "; give the graph that it was trained on");
  return network.in_channels;
}

void run_rgcn(const RgcnArguments& arguments) {
  check_outputs({arguments.weights, arguments.graph}, {{"OUT", arguments.out, Format::tensors}});
  const std::string graph_name = printable_path(arguments.graph);
  nn::RelationalNetworkOptions options;
  Precision precision;
  {
    const SafetensorsFile weights = SafetensorsFile::open(arguments.weights);
    options = nn::relational_options(weights);
    precision = precision_of(arguments, weights);
  }
  const GraphInput input = read_graph(arguments.graph, options.relations);
  const std::int64_t nodes = nodes_of(input, options, graph_name);
  check_nodes(graph_name, input.edge_index, nodes,
              input.features.defined() ? "" : ", which the network was made for");

  const Stream stream(parse_device(arguments.device));   // outlives what is ordered by it
  nn::RelationalNetwork network(options);
  network.to(precision.dtype);   // before loading: f64 weights keep their bits
  nn::load_weights(network, arguments.weights, {.convert = true});
  network.eval();

  network.to(stream);
  Tensor features;
  if (input.features.defined()) features = copy_to(stream, input.features.to(precision.dtype));
  StepTimer timer(stream);
  nn::RelationalGraph graph(nodes, options.relations, input.edge_index, input.edge_type, stream);
  (void)graph.of_features();
  if (!features.defined()) (void)graph.of_numbers();
  const double graph_ms = timer.wait_and_lap();
  nn::Context context;
  context.numerics.tf32 = precision.tf32;
  const nn::GraphTensor made = features.defined()
                                   ? network.forward({.features = features}, graph, context)
                                   : network.forward(graph, context);
  const double forward_ms = timer.wait_and_lap();
  const Tensor scores = copy_to_host(made.features, stream);
  const std::vector<NamedTensor> written{{"scores", scores}};
  write_safetensors(arguments.out, written);

  const auto layers = static_cast<std::int64_t>(options.widths.size());
  if (arguments.json) {
    print_json(nlohmann::ordered_json{{"nodes", nodes},
                                      {"edges", graph.edges()},
                                      {"inverses", input.has_inverses},
                                      {"relations", options.relations},
                                      {"layers", layers},
                                      {"classes", options.widths.back()},
                                      {"graph_ms", graph_ms},
                                      {"forward_ms", forward_ms},
                                      {"out", arguments.out}});
    return;
  }
  fmt::print("{} and {} of {}{}; {}, {}\ngraph {:.2f} ms, forward {:.2f} ms\nwritten to {}\n",
             counted(nodes, "node"), counted(graph.edges(), "edge"),
             counted(options.relations, "relation"),
             input.has_inverses ? ", half of them backwards" : "", counted(layers, "layer"),
             counted(options.widths.back(), "score"), graph_ms, forward_ms,
             printable_path(arguments.out));
}

}   // namespace

void add_rgcn_command(CLI::App& app) {
  const auto arguments = std::make_shared<RgcnArguments>();
  CLI::App* command = app.add_subcommand(
      "rgcn", "A trained network of relational graph convolutions over a graph of typed edges");
  command
      ->add_option("WEIGHTS", arguments->weights,
                   "safetensors file that pumice.save_weights wrote of a pumice.nn.graph.RGCN")
      ->required();
  command
      ->add_option("GRAPH", arguments->graph,
                   "safetensors file with edge_index i64 [2, edges] (sources, targets), edge_type "
                   "i64 [edges] and perhaps features [nodes, C_in]; or a folder with train2id.txt, "
                   "or with one file .nt, .nt.gz, .csv or .csv.gz, whose edges are taken backwards "
                   "too where the network has twice its relations")
      ->required();
  command->add_option("OUT", arguments->out, "scores [nodes, classes]")->required();
  command->add_option("--device", arguments->device, "cpu, cuda or cuda:1")->capture_default_str();
  add_precision(*command, arguments->precision,
                "Converts weights and features; default: as the weights are", true);
  add_threads(*command);
  add_json(*command, arguments->json);
  command->callback([arguments] { run_rgcn(*arguments); });
}

}   // namespace pumice::cli
