// `pumice rgms` on graphs that are worked out by hand.
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/safetensors.hpp>

#include "program.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

using Values = std::vector<double>;
using Tensors = std::vector<std::pair<std::string, Tensor>>;

class RgmsTest : public ProgramTest {
 protected:
  static Tensor floats(const Values& values, const Shape& shape) {
    return Tensor::from(std::span<const double>(values), shape).to(DType::f32);
  }
  static Tensor numbers(const std::vector<std::int64_t>& values, const Shape& shape) {
    return Tensor::from(std::span<const std::int64_t>(values), shape);
  }
  /// Of relation 0: 0 → 2 and 1 → 2; of relation 1: 1 → 2 twice and 2 → 0.
  static Tensors graph() {
    return {{"features", floats({1, 10, 2}, {3, 1})},
            {"edge_index", numbers({0, 1, 1, 1, 2, 2, 2, 2, 2, 0}, {2, 5})},
            {"edge_type", numbers({0, 0, 1, 1, 1}, {5})},
            {"weight", floats({1, 2, 3, 5}, {2, 1, 2})}};
  }
  void write(const Tensors& tensors) const {
    const std::vector<NamedTensor> views(tensors.begin(), tensors.end());
    write_safetensors(path("in.safetensors"), views);
  }
  Outcome run_it(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"rgms", path("in.safetensors"), path("out.safetensors")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  Tensor result(const char* name) const {
    return SafetensorsFile::open(path("out.safetensors")).get(name);
  }
  Values made(const char* name) const {
    const Tensor tensor = result(name).to(DType::f64);
    const auto values = tensor.span<double>();
    return {values.begin(), values.end()};
  }
};

TEST_F(RgmsTest, MultipliesForwardAndBackward) {
  Tensors tensors = graph();
  tensors.emplace_back("edge_weight", floats({1, 1, 1, 2, 1}, {5}));
  tensors.emplace_back("grad_output", floats({1, 0, 0, 0, 0, 1}, {3, 2}));
  write(tensors);
  const Outcome outcome = run_it();
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("3 nodes and 5 edges of 2 relations, 3 segments"), std::string::npos)
      << outcome.out;
  // Node 2: (1 + 10) · (1, 2) + (10 + 2 · 10) · (3, 5); node 0: 2 · (3, 5).
  EXPECT_EQ(made("features"), (Values{6, 10, 0, 0, 101, 172}));
  // Through (0, 1) at node 2: 2 for relation 0, 5 for relation 1; through (1, 0) at node 0: 3.
  EXPECT_EQ(made("grad_features"), (Values{2, 2 + 5 + 10, 3}));
  EXPECT_EQ(made("grad_weight"), (Values{0, 11, 2, 30}));
  EXPECT_EQ(made("grad_edge_weight"), (Values{2, 20, 50, 50, 6}));
  EXPECT_EQ(result("grad_edge_weight").shape(), Shape({5}));
}

TEST_F(RgmsTest, WithoutWeightsEdgesCountOnceEach) {
  write(graph());
  EXPECT_EQ(run_it({"--precision", "f64", "--json"}).code, 0);
  EXPECT_EQ(made("features"), (Values{6, 10, 0, 0, 71, 122}));
  EXPECT_EQ(result("features").dtype(), DType::f64);
}

TEST_F(RgmsTest, SaysWhatDoesNotFit) {
  const auto said = [&](const std::string& name, const Tensor& instead) {
    Tensors tensors = graph();
    for (auto& [key, tensor] : tensors)
      if (key == name) tensor = instead;
    write(tensors);
    const Outcome outcome = run_it();
    EXPECT_EQ(outcome.code, 1);
    return outcome.err;
  };
  EXPECT_NE(said("edge_type", numbers({0, 0, 1, 2, 1}, {5}))
                .find("edge_type[3] = 2 where there are 2 relations; give numbers from 0 on"),
            std::string::npos);
  EXPECT_NE(said("edge_index", numbers({0, 1, 1, 1, 2, 2, 2, 3, 2, 0}, {2, 5}))
                .find("in.safetensors: edge_index[1][2] = 3 where there are 3 nodes"),
            std::string::npos);
  Tensors weighted = graph();
  weighted.emplace_back("edge_weight", floats({1, 1, 1, 1}, {4}));
  write(weighted);
  EXPECT_NE(run_it().err.find("edge_weight is [4] and there are 5 edges"), std::string::npos);
  EXPECT_NE(
      said("edge_type", numbers({0, 0, 1, 1}, {4})).find("edge_index is [2, 5] and edge_type [4]"),
      std::string::npos);
  EXPECT_NE(said("weight", floats({1, 2}, {2, 1})).find("weight is f32 [2, 1]"), std::string::npos);
  EXPECT_NE(said("weight", floats({1, 2, 3, 4}, {2, 2, 1})).find("takes 2 channels"),
            std::string::npos);
  write({{"features", floats({1}, {1, 1})}});
  EXPECT_NE(run_it().err.find("tensor \"weight\" is missing"), std::string::npos);
}

class RgmsGpu : public RgmsTest {};

TEST_F(RgmsGpu, GivesTheNumbersOfTheCpu) {
  PUMICE_NEEDS_GPU();
  Tensors tensors = graph();
  tensors.emplace_back("edge_weight", floats({1, 1, 1, 2, 1}, {5}));
  tensors.emplace_back("grad_output", floats({1, 0, 0, 0, 0, 1}, {3, 2}));
  write(tensors);
  std::vector<Values> here, there;
  for (const char* device : {"cpu", "cuda"}) {
    const Outcome outcome = run_it({"--device", device});
    ASSERT_EQ(outcome.code, 0) << outcome.err;
    for (const char* name : {"features", "grad_features", "grad_weight", "grad_edge_weight"})
      (device == std::string("cpu") ? here : there).push_back(made(name));
  }
  EXPECT_EQ(here, there);   // small whole numbers
}

}   // namespace
}   // namespace pumice::test
