// A network of relational graph convolutions: `pumice.nn.graph.RGCN`, and what `pumice rgcn` runs.
#pragma once

#include <memory>
#include <vector>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/relational_convolution.hpp>

namespace pumice::nn {

struct RelationalNetworkOptions {
  std::int64_t in_channels = 0;         // of nodes without features their number
  std::vector<std::int64_t> widths{};   // what comes out of each layer
  std::int64_t relations = 0;
  std::optional<std::int64_t> bases{};
  std::optional<std::int64_t> blocks{};
  EntryReduction reduction = EntryReduction::mean;
  bool root_weight = true;
  bool bias = true;
};

/// Of weights whose metadata says that they are of such a network, and of the tensors beside it,
/// which show whether there are root weights and biases. UserError where both do not agree: making
/// the network takes no more memory than the file has bytes, times the number of its blocks.
RelationalNetworkOptions relational_options(const SafetensorsFile& file);

/// Layers `convs.0`, `convs.1`, … with ReLU between them.
class RelationalNetwork final : public ParameterTree {
 public:
  /// UserError without layers, and for what RelationalConvolution refuses.
  explicit RelationalNetwork(const RelationalNetworkOptions& options);
  /// [nodes, in_channels] to [nodes, the last width]: scores.
  GraphTensor forward(GraphTensor x, RelationalGraph& graph, Context& context);
  /// Of as many nodes without features as there are input channels.
  GraphTensor forward(RelationalGraph& graph, Context& context);

 private:
  GraphTensor behind_first(GraphTensor x, RelationalGraph& graph, Context& context);

  std::vector<std::shared_ptr<RelationalConvolution>> layers_;
};

}   // namespace pumice::nn
