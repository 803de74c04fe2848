// Matrices of relations from bases and blocks, and their products.
#include <pumice/nn/relational_convolution.hpp>

#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/copy.hpp>

#include "nn/graph_steps.hpp"

namespace pumice::nn {
namespace {

ConstTensorView row_of(const Tensor& edge_index, std::int64_t row) {
  const std::int64_t edges = edge_index.extent(1);
  return {edge_index.data<std::int64_t>() + row * edges, DType::i64, {edges}};
}

bool is_list(const Tensor& tensor, int rank) {
  return tensor.defined() && tensor.dtype() == DType::i64 && tensor.shape().rank() == rank &&
         tensor.device().kind == DeviceKind::cpu;
}

}   // namespace

RelationalGraph::RelationalGraph(std::int64_t nodes, std::int64_t relations, Tensor edge_index,
                                 Tensor edge_type, StreamView stream)
    : nodes_(nodes),
      relations_(relations),
      edge_index_(std::move(edge_index)),
      edge_type_(std::move(edge_type)),
      stream_(stream) {
  PUMICE_EXPECTS(is_list(edge_index_, 2) && is_list(edge_type_, 1) && edge_index_.extent(0) == 2 &&
                     edge_index_.extent(1) == edge_type_.rows(),
                 "RelationalGraph: edge_index is ", name_of(edge_index_.dtype()), ' ',
                 to_string(edge_index_.shape()), " and edge_type ", name_of(edge_type_.dtype()),
                 ' ', to_string(edge_type_.shape()),
                 "; i64 [2, edges], sources and targets, and i64 [edges] on the CPU are needed");
}

std::shared_ptr<TypedGraph> RelationalGraph::cut(std::int64_t columns,
                                                 ConstTensorView source) const {
  return std::make_shared<TypedGraph>(nodes_, columns, relations_, row_of(edge_index_, 1), source,
                                      edge_type_, stream_);
}

const std::shared_ptr<TypedGraph>& RelationalGraph::of_features() {
  if (of_features_ == nullptr) of_features_ = cut(nodes_, row_of(edge_index_, 0));
  return of_features_;
}

const std::shared_ptr<TypedGraph>& RelationalGraph::of_numbers() {
  if (of_numbers_ != nullptr) return of_numbers_;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  PUMICE_EXPECTS(relations_ == 0 || nodes_ <= kMost / relations_, "RelationalGraph: ", nodes_,
                 " nodes without features times ", relations_, " relations are more than ", kMost,
                 " rows of matrices; give features");
  (void)of_features();   // refuses what is no node or relation, by its name and place
  const std::int64_t* source = row_of(edge_index_, 0).data<std::int64_t>();
  const std::int64_t* type = edge_type_.data<std::int64_t>();
  std::vector<std::int64_t> row(static_cast<std::size_t>(edges()));
  for (std::size_t e = 0; e < row.size(); ++e)
    row[e] = type[e] * nodes_ + source[e];
  of_numbers_ = cut(nodes_ * relations_, {row.data(), DType::i64, {edges()}});
  return of_numbers_;
}

RelationalConvolution::RelationalConvolution(const RelationalConvolutionSpec& spec) : spec_(spec) {
  const std::int64_t in = spec.in_channels, out = spec.out_channels;
  PUMICE_EXPECTS(in > 0 && out > 0 && spec.relations > 0 && spec.bases.value_or(1) > 0 &&
                     spec.blocks.value_or(1) > 0,
                 "relational convolution: in_channels = ", in, ", out_channels = ", out,
                 ", relations = ", spec.relations, ", bases = ", spec.bases.value_or(1),
                 ", blocks = ", spec.blocks.value_or(1), "; all must be at least 1");
  PUMICE_EXPECTS(!spec.bases || !spec.blocks,
                 "relational convolution: bases = ", spec.bases.value_or(0),
                 " and blocks = ", spec.blocks.value_or(0), "; give one of them");
  Shape shape{spec.relations, in, out};
  if (spec.bases) shape = {*spec.bases, in, out};
  if (spec.blocks) {
    const std::int64_t blocks = *spec.blocks;
    PUMICE_EXPECTS(in % blocks == 0 && out % blocks == 0, "relational convolution: ", blocks,
                   " blocks of ", in, " and ", out, " channels; give a divisor of both");
    shape = {spec.relations, blocks, in / blocks, out / blocks};
  }
  weight_ = add_parameter("weight", {.shape = shape, .fan_in = in});
  if (spec.bases) {
    comp_ = add_parameter("comp", {.shape = {spec.relations, *spec.bases}, .fan_in = *spec.bases});
  }
  if (spec.root_weight) root_ = add_parameter("root", {.shape = {in, out}, .fan_in = in});
  if (spec.bias) bias_ = add_parameter("bias", {.shape = {out}, .compute_type = true});
}

GraphTensor RelationalConvolution::matrices(const Context& context) {
  const std::int64_t in = spec_.in_channels, out = spec_.out_channels;
  const GraphTensor weight = value_of(weight_, context);
  const Shape full{spec_.relations, in, out};
  if (spec_.bases) {
    const GraphTensor flat = reshaped(weight, {*spec_.bases, in * out}, context);
    return reshaped(product(value_of(comp_, context), flat, context), full, context);
  }
  if (!spec_.blocks) return weight;
  const std::int64_t blocks = *spec_.blocks;
  const std::int64_t rows = spec_.relations * in;
  // A row of a full matrix is one of its block, between zeros.
  if (!block_rows_.defined() || block_rows_.stream() != weight.features.stream()) {
    Tensor from({rows * blocks}, DType::i64);
    for (std::int64_t row = 0; row < rows; ++row) {
      for (std::int64_t block = 0; block < blocks; ++block) {
        const bool is_own = row % in / (in / blocks) == block;
        from.data<std::int64_t>()[row * blocks + block] = is_own ? row : -1;
      }
    }
    block_rows_ = copy_to(weight.features.stream(), from);
  }
  const GraphTensor flat = reshaped(weight, {rows, out / blocks}, context);
  return reshaped(picked(flat, block_rows_, context), full, context);
}

void RelationalConvolution::check(const RelationalGraph& graph, StreamView home) const {
  PUMICE_EXPECTS(graph.relations() == spec_.relations, label(), ": the graph has ",
                 graph.relations(), " relations, the layer ", spec_.relations);
  PUMICE_EXPECTS(graph.stream().device == home.device, label(), ": the graph is on ",
                 to_string(graph.stream().device), ", weights on ", to_string(home.device),
                 "; move the layer with to(stream)");
}

GraphTensor RelationalConvolution::forward(const GraphTensor& x, RelationalGraph& graph,
                                           Context& context) {
  const Tensor& stored = std::as_const(*weight_).value();
  check(graph, stored.stream());
  PUMICE_EXPECTS(x.features.shape() == Shape({graph.nodes(), spec_.in_channels}) &&
                     x.features.dtype() == stored.dtype(),
                 label(), ": features are ", name_of(x.features.dtype()), ' ',
                 to_string(x.features.shape()), "; ", name_of(stored.dtype()), " [", graph.nodes(),
                 ", ", spec_.in_channels, "] is needed");
  return relational(graph.of_features(), x, matrices(context), spec_.reduction, root_, bias_,
                    context);
}

GraphTensor RelationalConvolution::forward(RelationalGraph& graph, Context& context) {
  check(graph, std::as_const(*weight_).value().stream());
  PUMICE_EXPECTS(!spec_.blocks, label(),
                 ": block-diagonal weights take features, and the nodes have none; give "
                 "features, or train with bases");
  PUMICE_EXPECTS(graph.nodes() == spec_.in_channels, label(), ": the graph has ", graph.nodes(),
                 " nodes without features, and the layer was made for ", spec_.in_channels,
                 "; give features, or the graph that it was trained on");
  const GraphTensor rows = reshaped(
      matrices(context), {spec_.relations * spec_.in_channels, spec_.out_channels}, context);
  return looked_up(graph.of_numbers(), rows, spec_.reduction, root_, bias_, context);
}

}   // namespace pumice::nn
