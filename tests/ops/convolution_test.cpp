// What a convolution promises beside right sums: the same bits for every number of threads,
// sentences for mistakes, and answers where there is nothing to add up.
#include <pumice/ops/convolution.hpp>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "ops/convolution_check.hpp"
#include "ops/cpu/convolution_dataflows.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

constexpr Dataflow kDataflows[] = {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand,
                                   Dataflow::implicit_gemm};
constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

CoordinateSetPtr scattered_set(std::int64_t rows, std::uint64_t seed) {
  Random random(seed);
  return to_set(draw_sites(rows, 3, 2, std::nullopt, true, random), 3, std::nullopt);
}

KernelMapPtr submanifold3(std::int64_t rows, std::uint64_t seed) {
  return submanifold_map(scattered_set(rows, seed),
                         submanifold_window(3, {3, 3, 3, 1}, axes(3, 1)));
}

KernelMapPtr strided2(std::int64_t rows, std::uint64_t seed) {
  KernelWindow window;
  window.size = window.stride = {2, 2, 2, 1};
  return strided_map(scattered_set(rows, seed), window, StridedOutputs::cell);
}

Tensor random_tensor(const Shape& shape, DType type, std::uint64_t seed) {
  Random random(seed);
  return Values(shape, type, random).tensor;
}

TEST(ReferenceConvolution, AgreesWithAHandComputedExample) {
  // Sites 0, 1, 3 on a line, values 1, 2, 3; kernel (10, 20, 30), centred:
  // y(0) = 20·1 + 30·2, y(1) = 10·1 + 20·2, y(3) = 20·3.
  const reference::Geometry g{{3}, {1}, {1}, {1}};
  const reference::Sites sites{{0, 0}, {0, 1}, {0, 3}};
  const reference::Problem p{reference::meetings(sites, sites, g), 3, 3, 3, 1, 1, 1};
  EXPECT_EQ(reference::forward(p, {1, 2, 3}, {10, 20, 30}).value,
            (std::vector<double>{80, 50, 60}));
  // With gradient (1, 2, 3) of y: dx(0) = 20·1 + 10·2, dx(1) = 30·1 + 20·2, dx(3) = 20·3, and
  // dw = (x(0)·2, x(0)·1 + x(1)·2 + x(3)·3, x(1)·1).
  EXPECT_EQ(reference::input_gradient(p, {1, 2, 3}, {10, 20, 30}).value,
            (std::vector<double>{40, 70, 60}));
  EXPECT_EQ(reference::weight_gradient(p, {1, 2, 3}, {1, 2, 3}).value,
            (std::vector<double>{2, 14, 2}));
  EXPECT_EQ(reference::bias_gradient(p, {1, 2, 3}).value, (std::vector<double>{6}));
}

TEST(ReferenceConvolution, FindsTheOutputSitesOfAHandComputedExample) {
  // Kernel 3, stride 2, padding 1: out o sees in 2o − 1, 2o, 2o + 1.
  const reference::Geometry g{{3}, {2}, {1}, {1}};
  const reference::Sites sites{{0, -3}, {0, 0}, {1, 5}};
  EXPECT_EQ(reference::dilating_outputs(sites, g, std::nullopt),
            (std::set<reference::Site>{{0, -2}, {0, -1}, {0, 0}, {1, 2}, {1, 3}}));
  EXPECT_EQ(reference::cell_outputs(sites, g, std::nullopt),
            (std::set<reference::Site>{{0, -2}, {0, 0}, {1, 2}}));
  EXPECT_EQ(reference::generated_outputs({{0, -1}}, g, std::nullopt),
            (std::set<reference::Site>{{0, -3}, {0, -2}, {0, -1}}));
}

struct Width {
  std::int64_t in, out, groups;
};

/// Forward and all gradients, one after another.
std::vector<Tensor> all_results(const KernelMapView& map, DType type, const Width& width,
                                Dataflow dataflow) {
  const Tensor x = random_tensor({map.in_rows, width.in}, type, 33);
  const Tensor w = random_tensor({map.offsets, width.in / width.groups, width.out}, type, 34);
  const Tensor gradient = random_tensor({map.out_rows, width.out}, type, 35);
  const ConvolutionOptions options{.groups = width.groups, .dataflow = dataflow};
  return {convolution(x, w, map, options), convolution_input_gradient(gradient, w, map, options),
          convolution_weight_gradient(x, gradient, map, {.groups = width.groups}),
          bias_gradient(gradient)};
}

void expect_same_bits_for_every_number_of_threads(const KernelMapView& map, DType type,
                                                  const Width& width) {
  for (const Dataflow dataflow : kDataflows) {
    set_threads(1);
    const std::vector<Tensor> expected = all_results(map, type, width, dataflow);
    for (const int count : {2, 3}) {
      set_threads(count);
      const std::vector<Tensor> results = all_results(map, type, width, dataflow);
      for (std::size_t i = 0; i < results.size(); ++i) {
        EXPECT_TRUE(same_bits(expected[i], results[i]))
            << count << " threads, " << name_of(dataflow) << ", " << name_of(type) << ", "
            << width.in << " -> " << width.out << " in " << width.groups << ", result " << i;
      }
    }
  }
  set_threads(0);
}

TEST(Convolution, GivesTheSameBitsForEveryNumberOfThreads) {
  for (const KernelMapPtr& map : {submanifold3(5000, 31), strided2(5000, 32)}) {
    for (const DType type : kTypes) {
      for (const Width& width : {Width{19, 24, 1}, Width{8, 12, 2}, Width{17, 17, 17}}) {
        expect_same_bits_for_every_number_of_threads(map->view(), type, width);
      }
    }
  }
}

TEST(Convolution, GivesTheSameBitsForEveryNumberOfThreadsOnManyRows) {
  const KernelMapPtr map = submanifold3(65'537, 36);
  expect_same_bits_for_every_number_of_threads(map->view(), DType::f32, {16, 32, 1});
}

TEST(Convolution, WithoutRowsOrPairsIsTheEpilogueOfNothing) {
  const auto far = to_set({{0, 100, 0, 0}, {0, 200, 0, 0}}, 3, std::nullopt);
  const auto near = to_set({{0, 0, 0, 0}}, 3, std::nullopt);
  KernelWindow window;
  const KernelMapPtr none = map_between(near, far, window);
  ASSERT_EQ(none->pairs(), 0);
  const Tensor x = random_tensor({1, 5}, DType::f32, 41);
  const Tensor w = random_tensor({27, 5, 3}, DType::f32, 42);
  const Tensor shift = Tensor::from<float>(std::vector<float>{1.5f, -2.0f, 0.25f}, {3});
  for (const Dataflow dataflow : kDataflows) {
    const Tensor y = convolution(
        x, w, none->view(),
        {.epilogue = {.shift = shift, .activation = Activation::relu}, .dataflow = dataflow});
    EXPECT_EQ(std::vector<float>(y.span<float>().begin(), y.span<float>().end()),
              (std::vector<float>{1.5f, 0, 0.25f, 1.5f, 0, 0.25f}));
    const Tensor dx = convolution_input_gradient(y, w, none->view(), {.dataflow = dataflow});
    for (const float value : dx.span<float>())
      EXPECT_EQ(value, 0);
    const Tensor dw = convolution_weight_gradient(x, y, none->view());
    for (const float value : dw.span<float>())
      EXPECT_EQ(value, 0);
  }
  const KernelMapPtr empty = submanifold3(0, 43);
  const Tensor nothing({0, 5}, DType::f32);
  for (const Dataflow dataflow : kDataflows) {
    const Tensor y = convolution(nothing, w, empty->view(), {.dataflow = dataflow});
    EXPECT_EQ(y.shape(), Shape({0, 3}));
    EXPECT_EQ(convolution_weight_gradient(nothing, y, empty->view()).shape(), Shape({27, 5, 3}));
  }
  const Tensor db = bias_gradient(Tensor({0, 3}, DType::f32));
  for (const float value : db.span<float>())
    EXPECT_EQ(value, 0);
}

TEST(Convolution, AOneByOneKernelIsADenseProduct) {
  const auto set = scattered_set(1000, 51);
  const KernelMapPtr map = submanifold_map(set, submanifold_window(3, axes(3, 1), axes(3, 1)));
  const Tensor x = random_tensor({1000, 7}, DType::f64, 52);
  const Tensor w = random_tensor({1, 7, 9}, DType::f64, 53);
  const PlanPtr plan = plan_of(convolution_problem(x, w, map->view()), map->view());
  const Tensor y = convolution(x, w, map->view(), {.plan = plan.get()});
  for (std::int64_t row = 0; row < 1000; ++row) {
    for (std::int64_t c = 0; c < 9; ++c) {
      double sum = 0, magnitude = 0;
      for (std::int64_t i = 0; i < 7; ++i) {
        const double term = x.data<double>()[row * 7 + i] * w.data<double>()[i * 9 + c];
        sum += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(y.data<double>()[row * 9 + c], sum, tolerance(sum, magnitude, 7, DType::f64))
          << plan->name();
    }
  }
}

TEST(Convolution, SplitsOfTheOffsetsAddUp) {
  // The plan never splits on its own here, so the dataflow is run with a plan that does.
  const KernelMapPtr map = submanifold3(3000, 61);
  const Tensor x = random_tensor({3000, 8}, DType::f32, 62);
  const Tensor w = random_tensor({27, 8, 16}, DType::f32, 63);
  const Tensor shift = random_tensor({16}, DType::f32, 64);
  const Epilogue epilogue{.shift = shift, .activation = Activation::relu};
  const Tensor whole = convolution(x, w, map->view(), {.epilogue = epilogue});
  for (const int splits : {2, 3, 27}) {
    Tensor parts({3000, 16}, DType::f32);
    cpu::run({.input = x, .weight = w, .epilogue = epilogue, .output = parts.view()},
             relation_of(map->view()),
             {.dataflow = Dataflow::implicit_gemm,
              .tile_rows = 128,
              .sort_by_mask = true,
              .splits = splits,
              .reason = {}});
    for (std::int64_t i = 0; i < whole.elements(); ++i) {
      // |x|, |w| <= 1: Σ|x||w| is at most 27 · 8, once for either sum.
      ASSERT_NEAR(parts.data<float>()[i], whole.data<float>()[i],
                  2 * tolerance(0, 27 * 8 + 1, 27 * 8, DType::f32));
    }
  }
}

TEST(Convolution, APackedWeightGivesTheSameBits) {
  const KernelMapPtr map = submanifold3(500, 71);
  for (const DType type : kTypes) {
    const Tensor x = random_tensor({500, 12}, type, 72);
    const Tensor w = random_tensor({27, 12, 20}, type, 73);
    PackedWeights kept;
    const Tensor gradient = random_tensor({500, 20}, type, 74);
    for (int call = 0; call < 2; ++call) {   // the second finds both forms
      EXPECT_TRUE(same_bits(convolution(x, w, map->view()),
                            convolution(x, w, map->view(), {.kept = &kept})));
      EXPECT_TRUE(same_bits(convolution_input_gradient(gradient, w, map->view()),
                            convolution_input_gradient(gradient, w, map->view(), {.kept = &kept})));
    }
    const Tensor other = random_tensor({27, 12, 20}, type, 75);
    EXPECT_TRUE(same_bits(convolution(x, w, map->view()),
                          convolution(x, other, map->view(), {.kept = &kept})))
        << "of other numbers, until somebody clears it";
    kept.clear();
    EXPECT_TRUE(same_bits(convolution(x, other, map->view()),
                          convolution(x, other, map->view(), {.kept = &kept})));
    const Tensor wider = random_tensor({27, 12, 28}, type, 76);
    EXPECT_TRUE(same_bits(convolution(x, wider, map->view()),
                          convolution(x, wider, map->view(), {.kept = &kept})))
        << "one of another shape is packed by itself";
  }
}

TEST(Convolution, AMissingNeighbourNeverMeetsAWeight) {
  // A weight of infinity at an offset no pair uses must not turn zeros into NaN.
  const auto set = to_set({{0, 0, 0, 0}, {0, 1, 0, 0}, {0, 5, 0, 0}}, 3, std::nullopt);
  const KernelMapPtr map = submanifold_map(set, submanifold_window(3, {3, 3, 3, 1}, axes(3, 1)));
  std::vector<float> values(27 * 2 * 2, 1.0f);
  values[0] = values[1] = values[2] = values[3] = std::numeric_limits<float>::infinity();
  const Tensor w = Tensor::from<float>(values, {27, 2, 2});
  const Tensor x = random_tensor({3, 2}, DType::f32, 81);
  for (const Dataflow dataflow : kDataflows) {
    const Tensor y = convolution(x, w, map->view(), {.dataflow = dataflow});
    for (const float value : y.span<float>()) {
      EXPECT_TRUE(std::isfinite(value)) << name_of(dataflow);
    }
  }
}

/// The sentence of the UserError that `body` throws.
template <class Body> std::string complaint_of(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(Convolution, MistakesAreSentences) {
  const KernelMapPtr owner = submanifold3(40, 91);
  const KernelMapView map = owner->view();
  const Tensor x = random_tensor({40, 6}, DType::f32, 92);
  const Tensor w = random_tensor({27, 6, 8}, DType::f32, 93);
  const Tensor g = random_tensor({40, 8}, DType::f32, 94);
  const auto forward = [&](const Tensor& features, const Tensor& weight,
                           const ConvolutionOptions& options = {}) {
    return complaint_of([&] { convolution(features, weight, map, options); });
  };
  EXPECT_EQ(forward(random_tensor({39, 6}, DType::f32, 1), w),
            "features has 39 rows, but map.in_rows = 40: give the features of the coordinates the "
            "map was built for");
  EXPECT_EQ(forward(x, random_tensor({27, 8, 6}, DType::f32, 1)),
            "weight [27, 8, 6] in 1 groups takes 8 input channels, but features have 6: give "
            "[offsets, input channels / groups, output channels]");
  EXPECT_EQ(forward(x, random_tensor({8, 6, 8}, DType::f32, 1)),
            "weight has 8 offsets but the kernel map has 27: give weights made for the map's "
            "window");
  EXPECT_EQ(forward(x, random_tensor({27, 48}, DType::f32, 1)),
            "weight has shape [27, 48]: give [offsets, input channels / groups, output channels]");
  EXPECT_EQ(forward(x, w.to(DType::f16)),
            "weight is f16 but the features are f32: convert one of them");
  EXPECT_EQ(forward(Tensor::zeros({40, 6}, DType::i32), w),
            "features is i32: convert it to f64, f32, f16 or bf16");
  EXPECT_EQ(forward(random_tensor({40, 6, 1}, DType::f32, 1), w),
            "features has shape [40, 6, 1]: give a matrix with one row per site and one column per "
            "channel");
  EXPECT_EQ(forward(Tensor({40, 0}, DType::f32), w), "features has no channels: give at least one");
  EXPECT_EQ(forward(x, w, {.groups = 0}), "groups = 0: give at least 1");
  EXPECT_EQ(forward(x, w, {.groups = 3}),
            "groups = 3 does not divide the 8 channels of weight: choose a divisor");
  const Tensor bias = random_tensor({6}, DType::f32, 1);
  EXPECT_EQ(forward(x, w, {.epilogue = {.shift = bias}}),
            "the bias (epilogue.shift) has shape [6]: give one value for each of the 8 output "
            "channels");
  const Tensor whole = Tensor::zeros({8}, DType::i64);
  EXPECT_EQ(forward(x, w, {.epilogue = {.shift = whole}}),
            "the bias (epilogue.shift) is i64: it is applied where the sum is computed, so convert "
            "it to f32");
  const Tensor scale = random_tensor({8}, DType::f64, 1);
  EXPECT_EQ(forward(x, w, {.epilogue = {.scale = scale}}),
            "epilogue.scale is f64: it is applied where the sum is computed, so convert it to f32");
  EXPECT_EQ(forward(x, w, {.epilogue = {.residual = x}}),
            "epilogue.residual has shape [40, 6]: it is added to an output of [40, 8], so give it "
            "that shape");
  EXPECT_EQ(complaint_of([&] { convolution_input_gradient(x, w, map); }),
            "weight [27, 6, 8] makes 8 output channels, but grad_output has 6: give the weight of "
            "the forward convolution");
  EXPECT_EQ(complaint_of([&] { convolution_input_gradient(g.to(DType::f16), w, map); }),
            "weight is f32 but grad_output is f16: convert one of them");
  EXPECT_EQ(complaint_of([&] {
              convolution_input_gradient(g, w, map, {.epilogue = {.activation = Activation::relu}});
            }),
            "epilogue is set for a gradient: take the activation's gradient first and leave the "
            "epilogue empty but for a residual");
  EXPECT_EQ(complaint_of([&] { convolution_weight_gradient(x, g.to(DType::bf16), map); }),
            "features are f32 but grad_output is bf16: convert one of them");
  EXPECT_EQ(complaint_of([&] {
              convolution_weight_gradient(x, g, map, {.dataflow = Dataflow::fetch_on_demand});
            }),
            "dataflow = fetch_on_demand: a weight gradient is a sum over pairs and nothing else; "
            "leave the dataflow out");
  EXPECT_EQ(complaint_of([&] { convolution_weight_gradient(x, g, map, {.groups = 4}); }),
            "groups = 4 does not divide the 6 channels of features: choose a divisor");
  EXPECT_EQ(complaint_of([&] { bias_gradient(Tensor::zeros({8}, DType::f32)); }),
            "grad_output has shape [8]: give a matrix with one row per site and one column per "
            "channel");
}

TEST(Convolution, AGradientOfTheWeightGoesIntoGivenMemory) {
  for (const std::int64_t rows : {0, 1, 40}) {
    const auto map = submanifold3(rows, 3);
    for (const DType type : kTypes) {
      const Tensor x = random_tensor({map->view().in_rows, 6}, type, 1);
      const Tensor g = random_tensor({map->view().out_rows, 8}, type, 2);
      for (const std::int64_t groups : {1, 2}) {
        const ConvolutionOptions options{.groups = groups, .wide_weight_gradient = true};
        const DType wide = type == DType::f64 ? DType::f64 : DType::f32;
        Tensor into = Tensor::zeros({27, 6 / groups, 8}, wide);
        const Tensor placed =
            convolution_weight_gradient(x, g, map->view(), options, Place::zeroed(into));
        EXPECT_EQ(placed.raw(), into.raw());
        EXPECT_TRUE(
            same_bits(into, convolution_weight_gradient(x, g, map->view(), options).to(wide)))
            << rows << " rows of " << name_of(type) << " in " << groups;
      }
    }
  }
  const auto map = submanifold3(40, 3);
  const Tensor x = random_tensor({40, 6}, DType::f16, 1);
  const Tensor g = random_tensor({40, 8}, DType::f16, 2);
  const auto into = [&](const Shape& shape, DType type) {
    return complaint_of([&] {
      convolution_weight_gradient(x, g, map->view(), {.wide_weight_gradient = true},
                                  Tensor::zeros(shape, type));
    });
  };
  EXPECT_EQ(
      into({27, 8, 6}, DType::f32),
      "place is f32 [27, 8, 6], but the result is f32 [27, 6, 8]: give memory of that type and "
      "shape");
  EXPECT_EQ(
      into({27, 6, 8}, DType::f16),
      "place is f16 [27, 6, 8], but the result is f32 [27, 6, 8]: give memory of that type and "
      "shape");
}

}   // namespace
}   // namespace pumice::test
