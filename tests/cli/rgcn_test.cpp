// `pumice rgcn` beside a dense reference in float64, and what it says of files that do not fit.
#include <fstream>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/safetensors.hpp>
#include <pumice/nn/relational_network.hpp>
#include <pumice/nn/weights.hpp>

#include "nn/graph_reference.hpp"
#include "program.hpp"
#include "support/data.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

using nn::RelationalConvolutionSpec;
using nn::RelationalNetworkOptions;
using nn::test::GraphCase;
using nn::test::kRelations;
using nn::test::Matrix;
using Metadata = std::map<std::string, std::string>;

class RgcnTest : public ProgramTest {
 protected:
  static GraphCase graph() { return nn::test::graph_cases()[7]; }   // 31 nodes, 200 edges

  static RelationalNetworkOptions options(std::int64_t in_channels) {
    return {.in_channels = in_channels, .widths = {6, 4}, .relations = kRelations, .bases = 3};
  }
  static Metadata card(const RelationalNetworkOptions& of) {
    Metadata said{{"network", "rgcn"},
                  {"in_channels", std::to_string(of.in_channels)},
                  {"widths", std::to_string(of.widths[0]) + "," + std::to_string(of.widths[1])},
                  {"relations", std::to_string(of.relations)}};
    if (of.bases) said["bases"] = std::to_string(*of.bases);
    if (of.blocks) said["blocks"] = std::to_string(*of.blocks);
    return said;
  }
  nn::test::Weights write_weights(const RelationalNetworkOptions& of,
                                  const Metadata& more = {}) const {
    nn::RelationalNetwork network(of);
    nn::test::Weights weights = nn::test::draw(network, DType::f32);
    Metadata said = card(of);
    for (const auto& [key, value] : more)
      said[key] = value;
    nn::save_weights(network, path("weights.safetensors"), said);
    return weights;
  }
  void write_graph(const GraphCase& one, const Tensor& features = {}) const {
    const Tensor index = one.edge_index(), type = i64(one.type);
    std::vector<NamedTensor> tensors{{"edge_index", index}, {"edge_type", type}};
    if (features.defined()) tensors.emplace_back("features", features);
    write_safetensors(path("graph.safetensors"), tensors);
  }
  Outcome run_it(const std::string& on, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"rgcn", path("weights.safetensors"), on,
                                       path("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Outcome run_it() const { return run_it(path("graph.safetensors")); }
  Tensor scores() const { return SafetensorsFile::open(path("out.safetensors")).get("scores"); }

  static Matrix expected(const GraphCase& one, const RelationalNetworkOptions& of,
                         const nn::test::Weights& weights, const Matrix* x) {
    std::int64_t in = of.in_channels;
    Matrix made(0, 0);
    for (int i = 0; i < 2; ++i) {
      const std::string prefix = "convs." + std::to_string(i) + ".";
      nn::test::Weights of_layer;
      for (const auto& [name, tensor] : weights)
        if (name.starts_with(prefix)) of_layer[name.substr(prefix.size())] = tensor;
      const RelationalConvolutionSpec spec{.in_channels = in,
                                           .out_channels = of.widths[static_cast<std::size_t>(i)],
                                           .relations = of.relations,
                                           .bases = of.bases,
                                           .blocks = of.blocks,
                                           .reduction = of.reduction,
                                           .root_weight = of.root_weight,
                                           .bias = of.bias};
      const Matrix before = made;
      made = nn::test::rgcn_reference(one, spec, i == 0 ? x : &before, of_layer);
      for (double& value : made.values)
        value = i == 0 ? std::max(value, 0.0) : value;
      in = spec.out_channels;
    }
    return made;
  }
};

TEST_F(RgcnTest, ComputesWhatTheNetworkIsDefinedAs) {
  const GraphCase one = graph();
  const Tensor features = random_tensor({one.nodes(), 8}, DType::f32, 3);
  const Matrix x(features);
  std::vector<RelationalNetworkOptions> kinds(4, options(8));
  kinds[1].bases.reset();
  kinds[1].root_weight = false;
  kinds[2].bases.reset();
  kinds[2].blocks = 2;
  kinds[3].reduction = EntryReduction::max;
  kinds[3].bias = false;
  write_graph(one, features);
  for (const RelationalNetworkOptions& of : kinds) {
    const auto weights = write_weights(
        of, of.reduction == EntryReduction::max ? Metadata{{"aggr", "max"}} : Metadata{});
    for (const char* precision : {"f32", "f64"}) {
      const Outcome outcome =
          run_it(path("graph.safetensors"), {"--precision", precision, "--threads", "2"});
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      EXPECT_NE(outcome.out.find("31 nodes and 200 edges of 5 relations; 2 layers, 4 scores"),
                std::string::npos)
          << outcome.out;
      EXPECT_LT(nn::test::worst_difference(scores(), expected(one, of, weights, &x)),
                precision == std::string("f32") ? 1e-6 : 1e-13);
    }
  }
}

TEST_F(RgcnTest, LooksUpNodesWithoutFeatures) {
  const GraphCase one = graph();
  write_graph(one);
  const auto weights = write_weights(options(31));
  const Outcome outcome = run_it(path("graph.safetensors"), {"--json"});
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\"classes\":4"), std::string::npos) << outcome.out;
  EXPECT_EQ(scores().dtype(), DType::f32);
  EXPECT_LT(nn::test::worst_difference(scores(), expected(one, options(31), weights, nullptr)),
            1e-6);
}

TEST_F(RgcnTest, TakesFoldersAndTheirEdgesBackwards) {
  const std::string folder = path("edges");
  std::filesystem::create_directory(folder);
  std::ofstream(folder + "/edges.csv") << "0,0,1\n1,1,2\n2,0,0\n0,1,2\n";
  GraphCase one{{"both ways", 3, 3, {1, 2, 0, 2, 0, 1, 2, 0}, {0, 1, 2, 0, 1, 2, 0, 2}},
                {0, 2, 0, 2, 1, 3, 1, 3}};
  for (const std::int64_t relations : {2, 4}) {
    RelationalNetworkOptions of = options(3);
    of.relations = relations;
    const auto weights = write_weights(of);
    GraphCase there = one;
    if (relations == 2) {
      there.edges.row.resize(4);
      there.edges.column.resize(4);
      there.type = {0, 1, 0, 1};
    }
    const Outcome outcome = run_it(folder);
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_EQ(outcome.out.find("half of them backwards") != std::string::npos, relations == 4);
    EXPECT_LT(nn::test::worst_difference(scores(), expected(there, of, weights, nullptr)), 1e-6);
  }
  RelationalNetworkOptions of = options(3);
  of.relations = 3;
  write_weights(of);
  EXPECT_NE(run_it(folder).err.find("has 2 relations, and the network 3"), std::string::npos);
  of.relations = 2;
  of.in_channels = 5;
  write_weights(of);
  EXPECT_NE(run_it(folder).err.find("has 3 nodes without features, and the network was made for 5"),
            std::string::npos);
}

TEST_F(RgcnTest, SaysWhatDoesNotFit) {
  const GraphCase one = graph();
  write_graph(one);
  const auto said = [&] {
    const Outcome outcome = run_it();
    EXPECT_EQ(outcome.code, 1) << outcome.out;
    return outcome.err;
  };
  write_weights(options(31), {{"relations", "6"}});
  EXPECT_NE(said().find("convs.0.comp is [5, 3], and its metadata says [6, 3]"), std::string::npos);
  write_weights(options(31), {{"in_channels", "2000000000"}});
  EXPECT_NE(said().find("convs.0.weight is [3, 31, 6], and its metadata says [3, 2000000000, 6]"),
            std::string::npos);
  write_weights(options(31), {{"network", "minkunet42"}, {"widths", "spvnas"}});
  EXPECT_NE(said().find("weights of an R-GCN are needed"), std::string::npos);
  write_weights(options(30));
  EXPECT_NE(said().find("= 30 where there are 30 nodes, which the network was made for"),
            std::string::npos);
  write_weights(options(31));
  write_graph(one, Tensor::zeros({31, 8}, DType::f32));
  EXPECT_NE(said().find("features have 8 channels, and the network takes 31"), std::string::npos);
  const Tensor index = one.edge_index();
  const std::vector<NamedTensor> lone{{"edge_index", index}};
  write_safetensors(path("graph.safetensors"), lone);
  EXPECT_NE(said().find("tensor \"edge_type\" is missing"), std::string::npos);
  const Tensor few = i64({0});
  const std::vector<NamedTensor> uneven{{"edge_index", index}, {"edge_type", few}};
  write_safetensors(path("graph.safetensors"), uneven);
  EXPECT_NE(said().find("edge_index is [2, 200] and edge_type [1]"), std::string::npos);
  write_points(path("scan.ply"), slope(20, 30));
  EXPECT_NE(run({"run", "minkunet42", path("scan.ply"), "--weights", path("weights.safetensors")})
                .err.find("are of a network for graphs; run them with `pumice rgcn`"),
            std::string::npos);
  EXPECT_NE(run_it(path("")).err.find("no train2id.txt"), std::string::npos);
}

TEST_F(RgcnTest, RunsOverARecordedGraph) {
  PUMICE_NEEDS_DATA(aifb, "graphs/aifb");
  RelationalNetworkOptions of{.in_channels = 8285, .widths = {4, 4}, .relations = 90, .bases = 2};
  write_weights(of);
  const Outcome outcome = run_it(aifb.string());
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(
      outcome.out.find("8,285 nodes and 58,086 edges of 90 relations, half of them backwards"),
      std::string::npos)
      << outcome.out;
  EXPECT_EQ(scores().shape(), Shape({8285, 4}));
}

class RgcnGpu : public RgcnTest {};

TEST_F(RgcnGpu, GivesTheNumbersOfTheCpu) {
  PUMICE_NEEDS_GPU();
  const GraphCase one = graph();
  const Tensor features = random_tensor({one.nodes(), 8}, DType::f32, 3);
  for (const bool numbers : {false, true}) {
    write_graph(one, numbers ? Tensor() : features);
    write_weights(options(numbers ? 31 : 8));
    ASSERT_EQ(run_it().code, 0);
    const Matrix here(scores());
    const Outcome outcome = run_it(path("graph.safetensors"), {"--device", "cuda"});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_LT(nn::test::worst_difference(scores(), here), 1e-5);
  }
}

}   // namespace
}   // namespace pumice::test
