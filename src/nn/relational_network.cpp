#include <pumice/nn/relational_network.hpp>

#include <string>
#include <utility>

#include "nn/graph_steps.hpp"

namespace pumice::nn {

RelationalNetwork::RelationalNetwork(const RelationalNetworkOptions& options) {
  PUMICE_EXPECTS(!options.widths.empty(),
                 "relational network: there are no widths; give one for each layer");
  std::int64_t in_channels = options.in_channels;
  for (const std::int64_t width : options.widths) {
    const std::string name = "convs." + std::to_string(layers_.size());
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
