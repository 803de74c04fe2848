// Norms of edges, made on the CPU in float64, and the layer that weighs with them.
#include <pumice/nn/graph_convolution.hpp>

#include <cmath>
#include <utility>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/ops/elementwise.hpp>

#include "graphs/entry_numbers.hpp"
#include "nn/graph_steps.hpp"

namespace pumice::nn {
namespace {

struct WeightedEdges {
  std::vector<std::int64_t> source, target;
  std::vector<double> weight;

  void add(std::int64_t from, std::int64_t to, double value) {
    source.push_back(from);
    target.push_back(to);
    weight.push_back(value);
  }
};

std::vector<std::int64_t> row_of(const Tensor& edge_index, std::int64_t row, std::int64_t nodes) {
  const Tensor part = edge_index.part(row * edge_index.extent(1), {edge_index.extent(1)});
  std::vector<std::int64_t> numbers;
  with_numbers(part, [&](auto list) {
    check_numbers(list, nodes, "NormalizedGraph", row == 0 ? "edge_index[0]" : "edge_index[1]");
    numbers.assign(list.begin(), list.end());
  });
  return numbers;
}

/// An edge from a node to itself is put behind all others, once for each node, with the weight of
/// the last that was there.
WeightedEdges with_loops(const WeightedEdges& edges, std::int64_t nodes, double fill) {
  std::vector<double> loop(static_cast<std::size_t>(nodes), fill);
  WeightedEdges made;
  for (std::size_t e = 0; e < edges.source.size(); ++e) {
    if (edges.source[e] == edges.target[e]) {
      loop[static_cast<std::size_t>(edges.source[e])] = edges.weight[e];
    } else {
      made.add(edges.source[e], edges.target[e], edges.weight[e]);
    }
  }
  for (std::int64_t n = 0; n < nodes; ++n)
    made.add(n, n, loop[static_cast<std::size_t>(n)]);
  return made;
}

void normalize(WeightedEdges& edges, std::int64_t nodes) {
  std::vector<double> root(static_cast<std::size_t>(nodes));
  for (std::size_t e = 0; e < edges.target.size(); ++e)
    root[static_cast<std::size_t>(edges.target[e])] += edges.weight[e];
  for (double& value : root)
    value = value == 0 ? 0 : 1 / std::sqrt(value);
  for (std::size_t e = 0; e < edges.target.size(); ++e) {
    edges.weight[e] *= root[static_cast<std::size_t>(edges.source[e])] *
                       root[static_cast<std::size_t>(edges.target[e])];
  }
}

}   // namespace

NormalizedGraph::NormalizedGraph(std::int64_t nodes, const Tensor& edge_index,
                                 const Tensor& edge_weight, const NormalizedGraphOptions& options,
                                 StreamView stream) {
  const bool fits = edge_index.shape().rank() == 2 && edge_index.extent(0) == 2 &&
                    (edge_index.dtype() == DType::i64 || edge_index.dtype() == DType::i32) &&
                    edge_index.device().kind == DeviceKind::cpu;
  PUMICE_EXPECTS(fits && nodes >= 0, "NormalizedGraph: edge_index is ", name_of(edge_index.dtype()),
                 ' ', to_string(edge_index.shape()), " of ", nodes,
                 " nodes; i32 or i64 [2, edges] on the CPU is needed");
  PUMICE_EXPECTS(!edge_weight.defined() || (edge_weight.shape() == Shape{edge_index.extent(1)} &&
                                            is_floating(edge_weight.dtype())),
                 "NormalizedGraph: edge_weight is ", name_of(edge_weight.dtype()), ' ',
                 to_string(edge_weight.shape()), "; a floating type and [", edge_index.extent(1),
                 "], one number for each edge, are needed");
  WeightedEdges edges{row_of(edge_index, 0, nodes), row_of(edge_index, 1, nodes), {}};
  edges.weight.assign(edges.source.size(), 1);
  if (edge_weight.defined()) {
    const Tensor wide = edge_weight.to(DType::f64);
    edges.weight.assign(wide.span<double>().begin(), wide.span<double>().end());
  }
  if (options.add_self_loops) {
    edges = with_loops(edges, nodes, options.improved && edge_weight.defined() ? 2 : 1);
  }
  normalize(edges, nodes);

  const auto count = static_cast<std::int64_t>(edges.weight.size());
  Csr pattern(nodes, nodes, ConstTensorView(edges.target.data(), DType::i64, {count}),
              ConstTensorView(edges.source.data(), DType::i64, {count}));
  weights_ = Tensor::from(std::span<const double>(edges.weight), {count});
  if (stream.device.kind == DeviceKind::cuda) {
    pattern = copy_to(stream, pattern.view());
    weights_ = copy_to(stream, weights_.to(DType::f32));
  }
  graph_ = std::make_shared<Graph>(std::move(pattern), stream);
}

const Tensor& NormalizedGraph::weights(DType type) {
  if (type == weights_.dtype()) return weights_;
  if (!converted_.defined() || converted_.dtype() != type) converted_ = convert(weights_, type);
  return converted_;
}

GraphConvolution::GraphConvolution(const GraphConvolutionSpec& spec) {
  PUMICE_EXPECTS(spec.in_channels > 0 && spec.out_channels > 0,
                 "graph convolution: in_channels = ", spec.in_channels,
                 ", out_channels = ", spec.out_channels, "; both must be at least 1");
  weight_ = add_parameter(
      "lin.weight", {.shape = {spec.out_channels, spec.in_channels}, .fan_in = spec.in_channels});
  if (spec.bias)
    bias_ = add_parameter("bias", {.shape = {spec.out_channels}, .compute_type = true});
}

GraphTensor GraphConvolution::forward(const GraphTensor& x,
                                      const std::shared_ptr<NormalizedGraph>& graph,
                                      Context& context) {
  PUMICE_EXPECTS(graph != nullptr, label(), ": the graph is null; give one");
  const GraphTensor narrow = linear_step(x, weight_, nullptr, context);
  const Tensor& weights = graph->weights(x.features.dtype());
  return reduced(graph->graph(), weights, narrow, EntryReduction::sum, bias_, context);
}

}   // namespace pumice::nn
