// The relational graph convolution of Schlichtkrull et al. (arXiv:1703.06103), and the graph it
// goes over.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include <pumice/formats/typed_graph.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/nn/context.hpp>
#include <pumice/nn/graph_tensor.hpp>
#include <pumice/nn/parameter_tree.hpp>

namespace pumice::nn {

/// Typed edges of a network, cut once for all of its layers. For one thread at a time.
class RelationalGraph {
 public:
  /// `edge_index`: i64 [2, edges], sources and targets; `edge_type`: i64 [edges]; both on the CPU,
  /// shared and not copied. What is made of them lies on the device of `stream`. UserError for
  /// other shapes here, and for numbers that are no node or relation when they are cut.
  RelationalGraph(std::int64_t nodes, std::int64_t relations, Tensor edge_index, Tensor edge_type,
                  StreamView stream = {});

  std::int64_t nodes() const { return nodes_; }
  std::int64_t relations() const { return relations_; }
  std::int64_t edges() const { return edge_type_.rows(); }
  StreamView stream() const { return stream_; }
  /// What nodes bring is their features. Made when first asked for.
  const std::shared_ptr<TypedGraph>& of_features();
  /// What they bring is a row of their relation's matrix: columns are relation · nodes + source.
  /// Made when first asked for; UserError where these are 2³¹ or more.
  const std::shared_ptr<TypedGraph>& of_numbers();

 private:
  std::shared_ptr<TypedGraph> cut(std::int64_t columns, ConstTensorView source) const;

  std::int64_t nodes_;
  std::int64_t relations_;
  Tensor edge_index_;
  Tensor edge_type_;
  StreamView stream_;
  std::shared_ptr<TypedGraph> of_features_, of_numbers_;
};

struct RelationalConvolutionSpec {
  std::int64_t in_channels = 0;   // of nodes without features their number
  std::int64_t out_channels = 0;
  std::int64_t relations = 0;
  std::optional<std::int64_t> bases{};               // each matrix is a combination of so many
  std::optional<std::int64_t> blocks{};              // each is block-diagonal, of so many
  EntryReduction reduction = EntryReduction::mean;   // within a relation; relations are added up
  bool root_weight = true;
  bool bias = true;
};

/// W_root x + Σ over relations of W_r · (the neighbours' features through r, reduced) + b, with the
/// parameters of PyG's RGCNConv: `weight` [relations, C_in, C_out], of bases [bases, C_in, C_out]
/// and `comp` [relations, bases], of blocks [relations, blocks, C_in / blocks, C_out / blocks];
/// `root` [C_in, C_out], `bias` [C_out].
class RelationalConvolution final : public ParameterTree {
 public:
  /// UserError for bases beside blocks, and for blocks that divide no channels.
  explicit RelationalConvolution(const RelationalConvolutionSpec& spec);
  /// [nodes, C_in] to [nodes, C_out], of the weights' type, on the graph's device. UserError for
  /// other shapes, types and relations. On a device it is enqueued on the stream of the features.
  GraphTensor forward(const GraphTensor& x, RelationalGraph& graph, Context& context);
  /// Of nodes without features, whose rows of the matrices are looked up by their numbers: as many
  /// as there are input channels. UserError for others, and of blocks. It takes the memory of all
  /// matrices, relations · nodes · C_out. On a device it is enqueued on the graph's stream.
  GraphTensor forward(RelationalGraph& graph, Context& context);

  const RelationalConvolutionSpec& spec() const { return spec_; }

 private:
  bool counts_as_layer() const override { return true; }
  /// [relations, C_in, C_out], of bases and blocks too.
  GraphTensor matrices(const Context& context);
  void check(const RelationalGraph& graph, StreamView home) const;

  RelationalConvolutionSpec spec_;
  ParameterPtr weight_;
  ParameterPtr comp_;     // of bases; else null
  ParameterPtr root_;     // null without one
  ParameterPtr bias_;     // null without one
  Tensor block_rows_{};   // of blocks: where each row of the full matrices comes from
};

}   // namespace pumice::nn
