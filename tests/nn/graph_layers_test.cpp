// Layers of graphs beside dense references in float64, and their gradients beside central
// differences.
// Covers nn/graph_convolution, nn/sage_convolution, nn/relational_convolution,
// nn/relational_network.
#include <algorithm>
#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include <pumice/nn/relational_network.hpp>
#include <pumice/nn/weights.hpp>

#include "nn/graph_reference.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::nn::test {
namespace {

using pumice::test::message_of;

constexpr std::int64_t kIn = 6, kOut = 4;

std::shared_ptr<Graph> plain_graph(const GraphCase& one) {
  return std::make_shared<Graph>(one.edges.csr());
}

RelationalGraph typed_graph(const GraphCase& one) {
  return {one.nodes(), kRelations, one.edge_index(), i64(one.type)};
}

/// Sums of at most some hundred products of numbers below 1.
constexpr double kTolerance = 1e-12;

std::vector<RelationalConvolutionSpec> relational_specs(std::int64_t in_channels) {
  const RelationalConvolutionSpec plain{
      .in_channels = in_channels, .out_channels = kOut, .relations = kRelations};
  std::vector<RelationalConvolutionSpec> specs(5, plain);
  specs[1].bases = 3;
  specs[2].reduction = EntryReduction::sum;
  specs[2].root_weight = false;
  specs[3].reduction = EntryReduction::max;
  specs[3].bias = false;
  specs[4].root_weight = specs[4].bias = false;
  specs[4].bases = 7;   // more than relations
  return specs;
}

std::vector<RelationalConvolutionSpec> block_specs() {
  std::vector<RelationalConvolutionSpec> specs(
      3, {.in_channels = kIn, .out_channels = kOut, .relations = kRelations, .blocks = 2});
  specs[1].blocks = 1;
  specs[2].reduction = EntryReduction::max;
  return specs;
}

std::vector<SageConvolutionSpec> sage_specs() {
  std::vector<SageConvolutionSpec> specs;
  for (const std::int64_t out : {kOut, kIn, kIn + 3}) {
    for (const EntryReduction reduction :
         {EntryReduction::mean, EntryReduction::max, EntryReduction::sum}) {
      for (const bool root : {false, true}) {
        for (const bool bias : {false, true}) {
          specs.push_back({.in_channels = kIn,
                           .out_channels = out,
                           .reduction = reduction,
                           .root_weight = root,
                           .project = !root && !bias,
                           .bias = bias});
        }
      }
    }
  }
  return specs;
}

TEST(GraphLayers, GraphConvolutionIsItsDenseDefinition) {
  for (const GraphCase& one : graph_cases()) {
    for (const bool weighted : {false, true}) {
      for (const NormalizedGraphOptions& options :
           {NormalizedGraphOptions{}, {.add_self_loops = false}, {.improved = true}}) {
        Tensor edge_weight;
        if (weighted) {
          edge_weight = random_tensor({one.edges.entries()}, DType::f64, 5);
          for (double& value : edge_weight.span<double>())
            value = std::abs(value) + 0.1;
        }
        GraphConvolution layer({.in_channels = kIn, .out_channels = kOut, .bias = weighted});
        const Weights weights = draw(layer, DType::f64);
        const Tensor x = random_tensor({one.nodes(), kIn}, DType::f64, 3);
        const auto graph =
            std::make_shared<NormalizedGraph>(one.nodes(), one.edge_index(), edge_weight, options);
        Context context;
        EXPECT_LT(worst_difference(layer.forward({x}, graph, context).features,
                                   gcn_reference(one, edge_weight, options, Matrix(x), weights)),
                  kTolerance)
            << one.edges.name;
      }
    }
  }
}

TEST(GraphLayers, SageConvolutionIsItsDefinition) {
  for (const GraphCase& one : graph_cases()) {
    for (const SageConvolutionSpec& spec : sage_specs()) {
      SageConvolution layer(spec);
      const Weights weights = draw(layer, DType::f64);
      const Tensor x = random_tensor({one.nodes(), kIn}, DType::f64, 3);
      Context context;
      EXPECT_LT(worst_difference(layer.forward({x}, plain_graph(one), context).features,
                                 sage_reference(one, spec, Matrix(x), weights)),
                kTolerance)
          << one.edges.name;
    }
  }
}

TEST(GraphLayers, RelationalConvolutionIsItsDefinition) {
  for (const GraphCase& one : graph_cases()) {
    RelationalGraph graph = typed_graph(one);
    const Tensor x = random_tensor({one.nodes(), kIn}, DType::f64, 3);
    const Matrix dense(x);
    std::vector<RelationalConvolutionSpec> specs = relational_specs(kIn);
    for (const RelationalConvolutionSpec& spec : block_specs())
      specs.push_back(spec);
    for (const RelationalConvolutionSpec& spec : specs) {
      RelationalConvolution layer(spec);
      const Weights weights = draw(layer, DType::f64);
      Context context;
      EXPECT_LT(worst_difference(layer.forward({x}, graph, context).features,
                                 rgcn_reference(one, spec, &dense, weights)),
                kTolerance)
          << one.edges.name;
    }
    if (one.nodes() == 0) continue;
    for (const RelationalConvolutionSpec& spec : relational_specs(one.nodes())) {
      RelationalConvolution layer(spec);
      const Weights weights = draw(layer, DType::f64);
      Context context;
      EXPECT_LT(worst_difference(layer.forward(graph, context).features,
                                 rgcn_reference(one, spec, nullptr, weights)),
                kTolerance)
          << one.edges.name << ", without features";
    }
  }
}

/// Of each parameter and of the input, every element beside a central difference. In f64 a step of
/// 1e-6 leaves some 1e-9 of rounding for each unit that the loss is summed of.
void expect_gradients(const std::function<GraphTensor(const GraphTensor&, Context&)>& forward,
                      ParameterTree& layer, Tensor x) {
  layer.clear_gradients();
  GraphTensor input{x, x.defined() ? std::make_shared<Node>() : nullptr};
  Context recording{.record = true};
  const GraphTensor made = forward(input, recording);
  const Tensor grad = random_tensor(made.features.shape(), DType::f64, 77);
  backward(made.node, grad);
  double summed = 0;   // without signs
  const auto loss = [&] {
    Context context;
    const Tensor y = forward({x}, context).features;
    double sum = summed = 0;
    for (std::int64_t i = 0; i < y.elements(); ++i) {
      const double term = y.data<double>()[i] * grad.data<double>()[i];
      sum += term;
      summed += std::abs(term);
    }
    return sum;
  };
  const auto compare = [&](const std::string& name, Tensor& values, const Tensor& gradient) {
    ASSERT_EQ(gradient.shape(), values.shape()) << name;
    const Tensor wide = gradient.to(DType::f64);
    for (std::int64_t i = 0; i < values.elements(); ++i) {
      double& value = values.data<double>()[i];
      const double before = value;
      value = before + 1e-6;
      const double above = loss();
      value = before - 1e-6;
      const double below = loss();
      value = before;
      ASSERT_NEAR(wide.data<double>()[i], (above - below) / 2e-6, std::max(1e-7, 1e-8 * summed))
          << name << ", " << i;
    }
  };
  if (x.defined()) compare("x", x, input.node->gradient());
  for (const NamedParameter& named : layer.parameters())
    compare(named.name, named.parameter->edit(), named.parameter->gradient());
}

TEST(GraphLayers, GradientsAreCentralDifferences) {
  for (const GraphCase& one : graph_cases()) {
    if (one.nodes() > 40 || one.nodes() == 0) continue;
    SCOPED_TRACE(one.edges.name);
    const Tensor x = random_tensor({one.nodes(), kIn}, DType::f64, 3);
    const auto graph = plain_graph(one);
    RelationalGraph typed = typed_graph(one);

    GraphConvolution gcn({.in_channels = kIn, .out_channels = kOut});
    draw(gcn, DType::f64);
    const auto normalized = std::make_shared<NormalizedGraph>(one.nodes(), one.edge_index());
    expect_gradients([&](const GraphTensor& in,
                         Context& context) { return gcn.forward(in, normalized, context); },
                     gcn, x.clone());
    for (const SageConvolutionSpec& spec : sage_specs()) {
      SageConvolution sage(spec);
      draw(sage, DType::f64);
      expect_gradients(
          [&](const GraphTensor& in, Context& context) { return sage.forward(in, graph, context); },
          sage, x.clone());
    }
    std::vector<RelationalConvolutionSpec> specs = relational_specs(kIn);
    specs.push_back(block_specs()[0]);
    for (const RelationalConvolutionSpec& spec : specs) {
      RelationalConvolution layer(spec);
      draw(layer, DType::f64);
      expect_gradients([&](const GraphTensor& in,
                           Context& context) { return layer.forward(in, typed, context); },
                       layer, x.clone());
    }
    for (const RelationalConvolutionSpec& spec : relational_specs(one.nodes())) {
      RelationalConvolution layer(spec);
      draw(layer, DType::f64);
      expect_gradients(
          [&](const GraphTensor&, Context& context) { return layer.forward(typed, context); },
          layer, {});
    }
  }
}

TEST(GraphLayers, NetworkIsItsLayersWithReluBetween) {
  const GraphCase one = graph_cases()[7];
  RelationalGraph graph = typed_graph(one);
  for (const bool numbers : {false, true}) {
    RelationalNetwork network({.in_channels = numbers ? one.nodes() : kIn,
                               .widths = {7, 5, 3},
                               .relations = kRelations,
                               .bases = 2});
    const Weights weights = draw(network, DType::f64);
    const Tensor features = random_tensor({one.nodes(), kIn}, DType::f64, 3);
    Matrix x(features);
    for (int i = 0; i < 3; ++i) {
      const std::string prefix = "convs." + std::to_string(i) + ".";
      Weights of_layer;
      for (const char* name : {"weight", "comp", "root", "bias"})
        of_layer[name] = weights.at(prefix + name);
      const Shape shape = of_layer.at("weight").shape();
      const RelationalConvolutionSpec spec{
          .in_channels = shape[1], .out_channels = shape[2], .relations = kRelations, .bases = 2};
      x = rgcn_reference(one, spec, numbers && i == 0 ? nullptr : &x, of_layer);
      for (double& value : x.values)
        value = i < 2 ? std::max(value, 0.0) : value;
    }
    Context context;
    const GraphTensor made =
        numbers ? network.forward(graph, context) : network.forward({features}, graph, context);
    EXPECT_LT(worst_difference(made.features, x), kTolerance);
    EXPECT_EQ(network.layer_count(), 3);
    expect_gradients(
        [&](const GraphTensor& in, Context& recording) {
          return numbers ? network.forward(graph, recording)
                         : network.forward(in, graph, recording);
        },
        network, numbers ? Tensor() : features.clone());
  }
}

TEST(GraphLayers, WeightsAreFoundByTheNamesOfPyG) {
  const auto names_of = [](const ParameterTree& layer) {
    std::vector<std::string> names;
    for (const NamedParameter& named : layer.parameters())
      names.push_back(named.name + " " + to_string(named.parameter->spec().shape));
    return names;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_of(GraphConvolution({.in_channels = 6, .out_channels = 4})),
            (Names{"lin.weight [4, 6]", "bias [4]"}));
  EXPECT_EQ(names_of(SageConvolution({.in_channels = 6, .out_channels = 4, .project = true})),
            (Names{"lin.weight [6, 6]", "lin.bias [6]", "lin_l.weight [4, 6]", "lin_l.bias [4]",
                   "lin_r.weight [4, 6]"}));
  EXPECT_EQ(
      names_of(RelationalNetwork({.in_channels = 6, .widths = {4, 2}, .relations = 5, .bases = 3})),
      (Names{"convs.0.weight [3, 6, 4]", "convs.0.comp [5, 3]", "convs.0.root [6, 4]",
             "convs.0.bias [4]", "convs.1.weight [3, 4, 2]", "convs.1.comp [5, 3]",
             "convs.1.root [4, 2]", "convs.1.bias [2]"}));
  EXPECT_EQ(names_of(RelationalConvolution({.in_channels = 6,
                                            .out_channels = 4,
                                            .relations = 5,
                                            .blocks = 2,
                                            .root_weight = false,
                                            .bias = false})),
            (Names{"weight [5, 2, 3, 2]"}));
}

TEST(GraphLayers, SayWhatDoesNotFit) {
  const GraphCase one = graph_cases()[5];
  RelationalGraph graph = typed_graph(one);
  Context context;
  RelationalConvolution layer({.in_channels = 6, .out_channels = 4, .relations = kRelations});
  const auto said = [&](auto&& what) { return message_of(what); };
  EXPECT_EQ(said([&] {
              layer.forward({Tensor::zeros({4, 5}, DType::f32)}, graph, context);
            }),
            "the layer: features are f32 [4, 5]; f32 [4, 6] is needed");
  EXPECT_EQ(said([&] { layer.forward(graph, context); }),
            "the layer: the graph has 4 nodes without features, and the layer was made for 6; give "
            "features, or the graph that it was trained on");
  RelationalGraph other(4, 2, one.edge_index(), i64(one.type));
  EXPECT_EQ(said([&] {
              layer.forward({Tensor::zeros({4, 6}, DType::f32)}, other, context);
            }),
            "the layer: the graph has 2 relations, the layer 5");
  RelationalGraph wrong(4, 2, one.edge_index(), i64({0, 1, 2, 0}));
  RelationalConvolution few({.in_channels = 6, .out_channels = 4, .relations = 2});
  EXPECT_NE(said([&] {
              few.forward({Tensor::zeros({4, 6}, DType::f32)}, wrong, context);
            }).find("type[2] = 2 where there are 2"),
            std::string::npos);
  EXPECT_NE(said([] {
              RelationalConvolution(
                  {.in_channels = 6, .out_channels = 4, .relations = 2, .bases = 2, .blocks = 2});
            }).find("give one of them"),
            std::string::npos);
  EXPECT_NE(
      said([] {
        RelationalConvolution({.in_channels = 6, .out_channels = 4, .relations = 2, .blocks = 4});
      }).find("4 blocks of 6 and 4 channels"),
      std::string::npos);
  EXPECT_NE(said([] {
              RelationalNetwork({.in_channels = 6, .relations = 2});
            }).find("there are no widths"),
            std::string::npos);
  EXPECT_NE(said([&] {
              NormalizedGraph(3, one.edge_index());
            }).find("edge_index[0][0] = 3 where there are 3"),
            std::string::npos);
  SageConvolution sage({.in_channels = 6, .out_channels = 4});
  EXPECT_NE(said([&] {
              sage.forward({Tensor::zeros({3, 6}, DType::f32)}, plain_graph(one), context);
            }).find("3 sources and 3 targets have features, and the graph has 4 and 4"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::nn::test
