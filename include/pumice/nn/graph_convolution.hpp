// The graph convolution of Kipf and Welling (arXiv:1609.02907), and the graph it goes over.
#pragma once

#include <memory>

#include <pumice/graphs/graph.hpp>
#include <pumice/nn/context.hpp>
#include <pumice/nn/graph_tensor.hpp>
#include <pumice/nn/parameter_tree.hpp>

namespace pumice::nn {

struct NormalizedGraphOptions {
  bool add_self_loops = true;   // nodes without an edge to themselves get one
  /// The edge of a node to itself weighs 2 where edges have weights; without them it weighs 1, as
  /// in PyG.
  bool improved = false;
};

/// Edges with D^-1/2 (A + I) D^-1/2 as their weights, where D is the diagonal of the sums of rows
/// of A + I. Made once for a graph. For one thread at a time.
class NormalizedGraph {
 public:
  /// `edge_index`: i32 or i64 [2, edges], sources and targets; `edge_weight`: f32 or f64 [edges],
  /// or undefined: ones. Both on the CPU, where it is made; copied to the device of `stream`.
  /// UserError, naming entry and value, for a number that is no node.
  NormalizedGraph(std::int64_t nodes, const Tensor& edge_index, const Tensor& edge_weight = {},
                  const NormalizedGraphOptions& options = {}, StreamView stream = {});

  const std::shared_ptr<Graph>& graph() const { return graph_; }
  /// [entries] of that type; kept for the next call with it.
  const Tensor& weights(DType type);

 private:
  std::shared_ptr<Graph> graph_;
  Tensor weights_;   // f64 on the CPU, f32 on a device
  Tensor converted_{};
};

struct GraphConvolutionSpec {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  bool bias = true;
};

/// The normalised sum of the neighbours' W x, and a bias: `lin.weight` [C_out, C_in], `bias`
/// [C_out], as of PyG's GCNConv.
class GraphConvolution final : public ParameterTree {
 public:
  explicit GraphConvolution(const GraphConvolutionSpec& spec);
  /// [nodes, C_in] to [nodes, C_out], of the weights' type, on the graph's device. UserError for
  /// other shapes and types. On a device it is enqueued on the stream of the features.
  GraphTensor forward(const GraphTensor& x, const std::shared_ptr<NormalizedGraph>& graph,
                      Context& context);

 private:
  bool counts_as_layer() const override { return true; }

  ParameterPtr weight_;
  ParameterPtr bias_;   // null without one
};

}   // namespace pumice::nn
