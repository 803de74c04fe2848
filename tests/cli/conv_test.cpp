// `pumice conv`: every mode on three sites of a line, worked out by hand. The weights are 10, 100
// and 1000, so that a result spells which inputs met which offsets.
#include <cmath>
#include <map>
#include <tuple>

#include <pumice/core/safetensors.hpp>
#include <pumice/kernels/support.hpp>

#include "program.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

using Line = std::map<std::int32_t, double>;   // place on the line -> its one channel

struct Given {
  Line input;
  std::vector<std::int32_t> target{};
  std::vector<double> weight{10, 100, 1000};
  std::vector<double> bias{};
  std::vector<double> grad_output{};
};

/// The same story on a line (one axis) and along the middle axis of space, in f32 and f64.
class ConvTest : public ProgramTest, public ::testing::WithParamInterface<std::tuple<int, DType>> {
 protected:
  int dimension() const { return std::get<0>(GetParam()); }
  DType dtype() const { return std::get<1>(GetParam()); }
  std::int64_t place_axis() const { return dimension() == 1 ? 1 : 2; }

  Tensor coords(const std::vector<std::int32_t>& places) const {
    Tensor result =
        Tensor::zeros({static_cast<std::int64_t>(places.size()), 1 + dimension()}, DType::i32);
    for (std::size_t row = 0; row < places.size(); ++row) {
      const auto at = static_cast<std::int64_t>(row) * (1 + dimension()) + place_axis();
      result.data<std::int32_t>()[at] = places[row];
    }
    return result;
  }

  Tensor numbers(const std::vector<double>& values, Shape shape) const {
    return Tensor::from(std::span<const double>(values), shape).to(dtype());
  }

  void write_input(const Given& given) const {
    std::vector<std::int32_t> places;
    std::vector<double> values;
    for (const auto& [place, value] : given.input) {
      places.push_back(place);
      values.push_back(value);
    }
    const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
    std::vector<std::pair<std::string, Tensor>> tensors{
        {"coords", coords(places)},
        {"features", numbers(values, {count(values), 1})},
        {"weight", numbers(given.weight, {count(given.weight), 1, 1})}};
    if (!given.target.empty()) tensors.emplace_back("target_coords", coords(given.target));
    if (!given.bias.empty()) tensors.emplace_back("bias", numbers(given.bias, {1}));
    if (!given.grad_output.empty()) {
      tensors.emplace_back("grad_output",
                           numbers(given.grad_output, {count(given.grad_output), 1}));
    }
    const std::vector<NamedTensor> views(tensors.begin(), tensors.end());
    write_safetensors(path("in.safetensors"), views);
  }

  /// `values` per axis: `along` on the line's axis, `across` on others.
  std::vector<std::string> per_axis(const char* option, int along, int across) const {
    if (dimension() == 1) return {option, std::to_string(along)};
    return {option, std::to_string(across), std::to_string(along), std::to_string(across)};
  }

  void convolve(const Given& given, int kernel, int stride, int padding,
                std::vector<std::string> more) const {
    write_input(given);
    std::vector<std::string> arguments{"conv", path("in.safetensors"), path("out.safetensors")};
    const auto add = [&](const std::vector<std::string>& words) {
      arguments.insert(arguments.end(), words.begin(), words.end());
    };
    add(per_axis("--kernel", kernel, 1));
    add(per_axis("--stride", stride, 1));
    add(per_axis("--padding", padding, 0));
    add(more);
    run_well(arguments);
  }

  SafetensorsFile output() const { return SafetensorsFile::open(path("out.safetensors")); }

  std::vector<double> values(const char* name) const {
    const Tensor tensor = output().get(name).to(DType::f64);
    return {tensor.data<double>(), tensor.data<double>() + tensor.elements()};
  }

  /// The result as places and values; every other axis must be 0 and the type the input's.
  Line result() const {
    const SafetensorsFile file = output();
    EXPECT_EQ(file.dtype("coords"), DType::i32);
    EXPECT_EQ(file.dtype("features"), dtype());
    EXPECT_EQ(file.shape("coords")[1], 1 + dimension());
    Line line;
    for (const auto& [site, row] :
         rows_of<double>(file.get("coords"), file.get("features").to(DType::f64))) {
      const std::int32_t place = site[static_cast<std::size_t>(place_axis())];
      for (std::size_t axis = 0; axis < site.size(); ++axis) {
        EXPECT_TRUE(site[axis] == 0 || static_cast<std::int64_t>(axis) == place_axis());
      }
      EXPECT_TRUE(line.emplace(place, row[0]).second) << "site " << place << " comes twice";
    }
    return line;
  }
};

const Line kThree{{0, 1}, {1, 2}, {3, 4}};

TEST_P(ConvTest, SubmanifoldStaysOnItsSites) {
  convolve({.input = kThree}, 3, 1, 1, {"--mode", "submanifold"});
  EXPECT_EQ(result(), (Line{{0, 2100}, {1, 210}, {3, 400}}));
}

TEST_P(ConvTest, SubmanifoldCentresItsKernelUnasked) {
  write_input({.input = kThree});
  std::vector<std::string> arguments{"conv", path("in.safetensors"), path("out.safetensors")};
  const auto kernel = per_axis("--kernel", 3, 1);
  arguments.insert(arguments.end(), kernel.begin(), kernel.end());
  run_well(arguments);
  EXPECT_EQ(result(), (Line{{0, 2100}, {1, 210}, {3, 400}}));
}

TEST_P(ConvTest, TheBiasIsAddedOnceARow) {
  convolve({.input = kThree, .bias = {0.5}}, 3, 1, 1, {"--mode", "submanifold"});
  EXPECT_EQ(result(), (Line{{0, 2100.5}, {1, 210.5}, {3, 400.5}}));
}

TEST_P(ConvTest, DilationSkipsNeighbours) {
  // Offsets reach 2 away: 1 and 3 meet, 0 meets nobody.
  std::vector<std::string> more = per_axis("--dilation", 2, 1);
  more.insert(more.end(), {"--mode", "submanifold"});
  convolve({.input = kThree}, 3, 1, 2, more);
  EXPECT_EQ(result(), (Line{{0, 100}, {1, 4200}, {3, 420}}));
}

TEST_P(ConvTest, GradientsFollowThePairsBackwards) {
  convolve({.input = kThree, .bias = {0.5}, .grad_output = {1, 10, 100}}, 3, 1, 1,
           {"--mode", "submanifold"});
  EXPECT_EQ(values("grad_features"), (std::vector<double>{200, 2000, 10000}));
  EXPECT_EQ(values("grad_weight"), (std::vector<double>{10, 421, 2}));
  EXPECT_EQ(values("grad_bias"), (std::vector<double>{111}));
  EXPECT_EQ(output().shape("grad_features"), (Shape{3, 1}));
  EXPECT_EQ(output().shape("grad_weight"), (Shape{3, 1, 1}));
  EXPECT_EQ(output().shape("grad_bias"), (Shape{1}));
}

TEST_P(ConvTest, WithoutAGradientOfTheOutputThereAreNone) {
  convolve({.input = kThree, .bias = {0.5}}, 3, 1, 1, {"--mode", "submanifold"});
  EXPECT_EQ(output().names(), (std::vector<std::string>{"coords", "features"}));
}

// in = 2 out - 1 + k: site 0 is k = 1 of 0; site 1 is k = 2 of 0 and k = 0 of 1; site 3 is k = 2 of
// 1 and k = 0 of 2.
TEST_P(ConvTest, StridedMakesEverySiteItReaches) {
  convolve({.input = kThree}, 3, 2, 1, {"--mode", "strided"});
  EXPECT_EQ(result(), (Line{{0, 2100}, {1, 4020}, {2, 40}}));
}

TEST_P(ConvTest, StridedIsCutToTheGridWhereThereIsOne) {
  // An extent of 4 becomes (4 + 2 - 2 - 1) / 2 + 1 = 2.
  std::vector<std::string> more = per_axis("--spatial-shape", 4, 1);
  more.insert(more.end(), {"--mode", "strided", "--outputs", "dilating"});
  convolve({.input = kThree}, 3, 2, 1, more);
  EXPECT_EQ(result(), (Line{{0, 2100}, {1, 4020}}));
}

TEST_P(ConvTest, StridedByCellsMakesOneSiteForEachOccupiedCell) {
  convolve({.input = kThree}, 3, 2, 1, {"--mode", "strided", "--outputs", "cell"});
  EXPECT_EQ(result(), (Line{{0, 2100}, {1, 4020}}));
}

TEST_P(ConvTest, StridedCellsOfNegativePlacesRoundDown) {
  // Kernel 2, stride 2: -1 is offset 1 of cell -1, -2 offset 0 of it, 0 offset 0 of cell 0.
  convolve({.input = {{-2, 1}, {-1, 2}, {0, 4}}, .weight = {10, 100}}, 2, 2, 0,
           {"--mode", "strided", "--outputs", "cell"});
  EXPECT_EQ(result(), (Line{{-1, 210}, {0, 40}}));
}

TEST_P(ConvTest, InverseReturnsToTheSitesOfTheForwardMap) {
  // in = 2 out + k forward, so fine 0, 1, 3 hang on coarse 0, 0, 1 by k = 0, 1, 1.
  convolve({.input = {{0, 3}, {1, 5}}, .target = {0, 1, 3}, .weight = {10, 100}}, 2, 2, 0,
           {"--mode", "inverse"});
  EXPECT_EQ(result(), (Line{{0, 30}, {1, 300}, {3, 500}}));
}

TEST_P(ConvTest, InverseHasGradientsToo) {
  convolve({.input = {{0, 3}, {1, 5}},
            .target = {0, 1, 3},
            .weight = {10, 100},
            .grad_output = {1, 10, 100}},
           2, 2, 0, {"--mode", "inverse"});
  EXPECT_EQ(values("grad_features"), (std::vector<double>{1010, 10000}));
  EXPECT_EQ(values("grad_weight"), (std::vector<double>{3, 530}));
}

// fine = 2 coarse - 1 + k: coarse 0 reaches -1, 0, 1 and coarse 1 reaches 1, 2, 3.
TEST_P(ConvTest, TransposedFillsTheSitesItIsGiven) {
  convolve({.input = {{0, 3}, {1, 5}}, .target = {0, 1, 2, 3, 9}}, 3, 2, 1,
           {"--mode", "transposed"});
  EXPECT_EQ(result(), (Line{{0, 300}, {1, 3050}, {2, 500}, {3, 5000}, {9, 0}}));
}

TEST_P(ConvTest, GenerativeFillsEverySiteItReaches) {
  convolve({.input = {{0, 3}, {1, 5}}}, 3, 2, 1, {"--mode", "generative"});
  EXPECT_EQ(result(), (Line{{-1, 30}, {0, 300}, {1, 3050}, {2, 500}, {3, 5000}}));
}

TEST_P(ConvTest, EveryDataflowGivesTheSameResult) {
  for (const char* dataflow : {"gather_gemm_scatter", "fetch_on_demand", "implicit_gemm"}) {
    SCOPED_TRACE(dataflow);
    convolve({.input = kThree, .grad_output = {1, 10, 100}}, 3, 1, 1,
             {"--mode", "submanifold", "--dataflow", dataflow});
    EXPECT_EQ(result(), (Line{{0, 2100}, {1, 210}, {3, 400}}));
    EXPECT_EQ(values("grad_features"), (std::vector<double>{200, 2000, 10000}));
    EXPECT_EQ(values("grad_weight"), (std::vector<double>{10, 421, 2}));
  }
}

TEST_P(ConvTest, AnEmptyInputGivesAnEmptyResult) {
  convolve({.input = {}}, 3, 2, 1, {"--mode", "strided"});
  EXPECT_EQ(result(), Line{});
}

TEST_P(ConvTest, JsonSaysWhatRan) {
  write_input({.input = kThree});
  std::vector<std::string> arguments{"conv", path("in.safetensors"), path("out.safetensors")};
  const auto kernel = per_axis("--kernel", 3, 1);
  arguments.insert(arguments.end(), kernel.begin(), kernel.end());
  const nlohmann::json said = run_json(arguments);
  EXPECT_EQ(said.at("rows_in"), 3);
  EXPECT_EQ(said.at("rows_out"), 3);
  EXPECT_EQ(said.at("pairs"), 5);
  EXPECT_EQ(said.at("channels_in"), 1);
  EXPECT_EQ(said.at("channels_out"), 1);
  EXPECT_NE(said.at("plan"), "");
}

TEST_P(ConvTest, ConvertsBeforeItMultiplies) {
  convolve({.input = kThree, .bias = {0.5}, .grad_output = {1, 10, 100}}, 3, 1, 1,
           {"--mode", "submanifold", "--precision", "bf16"});
  for (const char* name : {"features", "grad_features", "grad_weight"})
    EXPECT_EQ(output().dtype(name), DType::bf16) << name;
  EXPECT_EQ(output().dtype("grad_bias"), DType::f32);
  EXPECT_EQ(values("grad_weight"), (std::vector<double>{10, 420, 2}));   // 421 has nine bits
}

TEST_P(ConvTest, RefusesTf32OnTheCpu) {
  write_input({.input = kThree});
  const Outcome outcome =
      run({"conv", path("in.safetensors"), path("out.safetensors"), "--precision", "tf32"});
  EXPECT_NE(outcome.code, 0);
  EXPECT_NE(outcome.err.find("--device cuda"), std::string::npos) << outcome.err;
  EXPECT_FALSE(std::filesystem::exists(path("out.safetensors")));
}

/// Small whole numbers, which every type and every order of sums gets right.
class ConvOnDeviceGpu : public ConvTest {};

TEST_P(ConvOnDeviceGpu, GivesTheNumbersOfEveryDataflow) {
  PUMICE_NEEDS_GPU();
  const Given given{.input = kThree, .bias = {0.5}, .grad_output = {1, 10, 100}};
  std::vector<std::string> dataflows{"implicit_gemm", "fetch_on_demand"};
  if (dense_product_library().available) dataflows.emplace_back("gather_gemm_scatter");
  for (const std::string& dataflow : dataflows) {
    for (const char* precision : {"f32", "tf32"}) {
      SCOPED_TRACE(dataflow + " " + precision);
      convolve(given, 3, 1, 1,
               {"--mode", "submanifold", "--device", "cuda", "--dataflow", dataflow, "--precision",
                precision, "--deterministic"});
      EXPECT_EQ(result(), (Line{{0, 2100.5}, {1, 210.5}, {3, 400.5}}));
      EXPECT_EQ(values("grad_features"), (std::vector<double>{200, 2000, 10000}));
      EXPECT_EQ(values("grad_weight"), (std::vector<double>{10, 421, 2}));
      EXPECT_EQ(values("grad_bias"), (std::vector<double>{111}));
      convolve({.input = kThree}, 3, 2, 1,
               {"--mode", "strided", "--device", "cuda", "--dataflow", dataflow, "--precision",
                precision});
      EXPECT_EQ(result(), (Line{{0, 2100}, {1, 4020}, {2, 40}}));
    }
  }
}

std::string story_name(const ::testing::TestParamInfo<std::tuple<int, DType>>& info) {
  return std::to_string(std::get<0>(info.param)) + "d_" +
         std::string(name_of(std::get<1>(info.param)));
}

INSTANTIATE_TEST_SUITE_P(Lines, ConvTest,
                         ::testing::Combine(::testing::Values(1, 3),
                                            ::testing::Values(DType::f32, DType::f64)),
                         story_name);
INSTANTIATE_TEST_SUITE_P(Lines, ConvOnDeviceGpu,
                         ::testing::Combine(::testing::Values(1, 3), ::testing::Values(DType::f32)),
                         story_name);

}   // namespace
}   // namespace pumice::test
