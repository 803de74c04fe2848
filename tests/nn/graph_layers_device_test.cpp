// Layers of graphs on a device beside their dense references in float64.
// Covers nn/graph_convolution, nn/sage_convolution, nn/relational_convolution,
// nn/relational_network.
#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/relational_network.hpp>

#include "nn/graph_reference.hpp"
#include "support/gpu.hpp"

namespace pumice::nn::test {
namespace {

using pumice::test::kGpu;

constexpr std::int64_t kIn = 8, kOut = 4;

/// f32 sums of some hundred products; f16 keeps 11 bits of each step between.
double tolerance(DType type) {
  return type == DType::f32 ? 1e-5 : 1e-2;
}

TEST(GraphLayersGpu, AreTheirDefinitions) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const GraphCase& one : graph_cases()) {
    for (const DType type : {DType::f32, DType::f16}) {
      SCOPED_TRACE(one.edges.name + std::string(" ") + std::string(name_of(type)));
      const Tensor x = random_tensor({one.nodes(), kIn}, type, 3);
      const Matrix dense(x);
      const GraphTensor there{copy_to(stream, x)};
      Context context;
      const auto expect = [&](const GraphTensor& made, const Matrix& expected) {
        EXPECT_LT(worst_difference(copy_to_host(made.features, stream), expected), tolerance(type));
      };
      GraphConvolution gcn({.in_channels = kIn, .out_channels = kOut});
      Weights weights = draw(gcn, type);
      gcn.to(stream);
      const auto normalized = std::make_shared<NormalizedGraph>(
          one.nodes(), one.edge_index(), Tensor(), NormalizedGraphOptions{}, stream);
      expect(gcn.forward(there, normalized, context), gcn_reference(one, {}, {}, dense, weights));

      const Csr pattern = one.edges.csr();
      const auto graph = std::make_shared<Graph>(copy_to(stream, pattern.view()), stream);
      for (const EntryReduction reduction : {EntryReduction::mean, EntryReduction::max}) {
        const SageConvolutionSpec spec{
            .in_channels = kIn, .out_channels = kOut, .reduction = reduction};
        SageConvolution sage(spec);
        weights = draw(sage, type);
        sage.to(stream);
        expect(sage.forward(there, graph, context), sage_reference(one, spec, dense, weights));
      }
      RelationalGraph typed(one.nodes(), kRelations, one.edge_index(), i64(one.type), stream);
      RelationalConvolutionSpec spec{
          .in_channels = kIn, .out_channels = kOut, .relations = kRelations};
      for (const char* kind : {"plain", "bases", "blocks"}) {
        spec.bases.reset();
        if (kind == std::string("bases")) spec.bases = 3;
        if (kind == std::string("blocks")) spec.blocks = 2;
        spec.root_weight = !spec.bases;
        RelationalConvolution layer(spec);
        weights = draw(layer, type);
        layer.to(stream);
        expect(layer.forward(there, typed, context), rgcn_reference(one, spec, &dense, weights));
      }
      if (one.nodes() == 0) continue;
      spec.blocks.reset();
      spec.in_channels = one.nodes();
      spec.root_weight = true;
      for (const bool bases : {false, true}) {
        if (bases) spec.bases = 3;
        RelationalConvolution layer(spec);
        weights = draw(layer, type);
        layer.to(stream);
        expect(layer.forward(typed, context), rgcn_reference(one, spec, nullptr, weights));
      }
    }
  }
}

/// Gradients there beside those of the CPU in float64, which are compared with differences.
TEST(GraphLayersGpu, HaveTheGradientsOfTheCpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const GraphCase& one : graph_cases()) {
    if (one.nodes() == 0) continue;
    SCOPED_TRACE(one.edges.name);
    const auto gradients = [&](DType type, StreamView where) {
      RelationalNetwork network(
          {.in_channels = kIn, .widths = {kOut, kOut}, .relations = kRelations, .bases = 3});
      draw(network, DType::f32);
      network.to(type);
      if (where.device.kind == DeviceKind::cuda) network.to(where);
      const Tensor x = random_tensor({one.nodes(), kIn}, DType::f32, 3).to(type);
      const GraphTensor in{copy_to(where, x), std::make_shared<Node>()};
      RelationalGraph graph(one.nodes(), kRelations, one.edge_index(), i64(one.type), where);
      Context context{.record = true};
      const GraphTensor made = network.forward(in, graph, context);
      backward(made.node,
               copy_to(where, random_tensor(made.features.shape(), DType::f32, 77).to(type)));
      std::vector<Tensor> all{copy_to_host(in.node->gradient(), where)};
      for (const NamedParameter& named : network.parameters())
        all.push_back(copy_to_host(named.parameter->gradient(), where));
      return all;
    };
    const std::vector<Tensor> here = gradients(DType::f64, {});
    const std::vector<Tensor> there = gradients(DType::f32, stream);
    ASSERT_EQ(here.size(), there.size());
    for (std::size_t i = 0; i < here.size(); ++i) {
      Matrix expected(here[i]);
      EXPECT_LT(worst_difference(there[i].reshaped({expected.rows, expected.columns}), expected),
                1e-5)
          << i;
    }
  }
}

}   // namespace
}   // namespace pumice::nn::test
