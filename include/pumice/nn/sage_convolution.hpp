// The layer of GraphSAGE (arXiv:1706.02216).
#pragma once

#include <memory>

#include <pumice/graphs/graph.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/nn/context.hpp>
#include <pumice/nn/graph_tensor.hpp>
#include <pumice/nn/parameter_tree.hpp>

namespace pumice::nn {

struct SageConvolutionSpec {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  EntryReduction reduction = EntryReduction::mean;
  bool root_weight = true;
  /// Features of sources go through a layer and ReLU first: the pooling of GraphSAGE, with max.
  bool project = false;
  bool bias = true;
};

/// W_l · (the neighbours' features, reduced) + W_r x + b: `lin_l.weight`, `lin_r.weight` [C_out,
/// C_in], `lin_l.bias` [C_out], `lin.weight` and `lin.bias` of the projection, as of PyG's
/// SAGEConv.
class SageConvolution final : public ParameterTree {
 public:
  explicit SageConvolution(const SageConvolutionSpec& spec);
  /// [nodes, C_in] to [nodes, C_out], of the weights' type, on the graph's device. UserError for
  /// other shapes and types. On a device it is enqueued on the stream of the features.
  GraphTensor forward(const GraphTensor& x, const std::shared_ptr<Graph>& graph, Context& context);
  /// Of a graph whose sources are other nodes than its targets; features of the type of both.
  GraphTensor forward(const GraphTensor& sources, const GraphTensor& targets,
                      const std::shared_ptr<Graph>& graph, Context& context);

 private:
  bool counts_as_layer() const override { return true; }

  SageConvolutionSpec spec_;
  ParameterPtr projection_, projection_bias_, of_neighbours_, bias_, of_root_;   // or null
};

}   // namespace pumice::nn
