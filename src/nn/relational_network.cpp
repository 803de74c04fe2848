// Layers, and their sizes from a file of weights.
#include <pumice/nn/relational_network.hpp>

#include <string>
#include <utility>

#include <pumice/nn/model_card.hpp>

#include "core/printable.hpp"
#include "nn/graph_steps.hpp"

namespace pumice::nn {
namespace {

std::string layer_name(std::size_t i) {
  return "convs." + std::to_string(i);
}

void expect_shape(const SafetensorsFile& file, const std::string& name, const Shape& wanted) {
  PUMICE_EXPECTS(file.contains(name), file.name(), ": tensor \"", name,
                 "\" is missing, which its metadata says the network has");
  PUMICE_EXPECTS(file.shape(name) == wanted, file.name(), ": ", name, " is ",
                 to_string(file.shape(name)), ", and its metadata says ", to_string(wanted));
}

}   // namespace

RelationalNetworkOptions relational_options(const SafetensorsFile& file) {
  const ModelCard card = read_model_card(file);
  PUMICE_EXPECTS(card.relational, file.name(), ": its metadata says ",
                 card.network.empty() ? std::string("no network")
                                      : "network = \"" + printable(card.network) + "\"",
                 "; weights of an R-GCN are needed, as pumice.save_weights writes them of a "
                 "pumice.nn.graph.RGCN");
  const RelationalCard& of = *card.relational;
  RelationalNetworkOptions options{.in_channels = *card.in_channels,
                                   .widths = of.widths,
                                   .relations = of.relations,
                                   .bases = of.bases,
                                   .blocks = of.blocks,
                                   .reduction = of.reduction,
                                   .root_weight = file.contains(layer_name(0) + ".root"),
                                   .bias = file.contains(layer_name(0) + ".bias")};
  std::int64_t in = options.in_channels;
  for (std::size_t i = 0; i < options.widths.size(); ++i) {
    const std::string name = layer_name(i);
    const std::int64_t out = options.widths[i], blocks = of.blocks.value_or(1);
    PUMICE_EXPECTS(in % blocks == 0 && out % blocks == 0, file.name(), ": its metadata says ",
                   blocks, " blocks of ", in, " and ", out, " channels; they must divide both");
    const Shape shape = of.blocks ? Shape{of.relations, blocks, in / blocks, out / blocks}
                                  : Shape{of.bases.value_or(of.relations), in, out};
    expect_shape(file, name + ".weight", shape);
    if (of.bases) expect_shape(file, name + ".comp", {of.relations, *of.bases});
    if (options.root_weight) expect_shape(file, name + ".root", {in, out});
    in = out;
  }
  return options;
}

RelationalNetwork::RelationalNetwork(const RelationalNetworkOptions& options) {
  PUMICE_EXPECTS(!options.widths.empty(),
                 "relational network: there are no widths; give one for each layer");
  std::int64_t in_channels = options.in_channels;
  for (const std::int64_t width : options.widths) {
    const std::string name = layer_name(layers_.size());
    layers_.push_back(
        add_child(name, std::make_shared<RelationalConvolution>(
                            RelationalConvolutionSpec{.in_channels = in_channels,
                                                      .out_channels = width,
                                                      .relations = options.relations,
                                                      .bases = options.bases,
                                                      .blocks = options.blocks,
                                                      .reduction = options.reduction,
                                                      .root_weight = options.root_weight,
                                                      .bias = options.bias})));
    in_channels = width;
  }
}

GraphTensor RelationalNetwork::behind_first(GraphTensor x, RelationalGraph& graph,
                                            Context& context) {
  for (std::size_t i = 1; i < layers_.size(); ++i) {
    x = layers_[i]->forward(activated(x, Activation::relu, context), graph, context);
  }
  return x;
}

GraphTensor RelationalNetwork::forward(GraphTensor x, RelationalGraph& graph, Context& context) {
  return behind_first(layers_[0]->forward(x, graph, context), graph, context);
}

GraphTensor RelationalNetwork::forward(RelationalGraph& graph, Context& context) {
  return behind_first(layers_[0]->forward(graph, context), graph, context);
}

}   // namespace pumice::nn
