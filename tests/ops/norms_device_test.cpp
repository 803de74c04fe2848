// Norms, activations and sums over rows on a CUDA device, the same calls as on the CPU, forward and
// backward.
// Covers activation and normalization on a device.
#include <utility>

#include <gtest/gtest.h>

#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>

#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

struct Problem {
  std::int64_t rows;
  std::int64_t channels;
};
constexpr Problem kProblems[] = {{0, 8}, {31, 3}, {33, 64}, {65537, 20}, {20011, 96}, {300, 1030}};

struct Inputs {
  Inputs(const Problem& problem, DType type, StreamView stream)
      : x(chance_tensor({problem.rows, problem.channels}, type, 1, 3, 5)),
        dy(chance_tensor(x.shape(), type, 2)),
        weight(chance_tensor({problem.channels}, DType::f32, 3, 0.5, 1.5)),
        bias(chance_tensor({problem.channels}, DType::f32, 4)),
        gpu_x(copy_to(stream, x)),
        gpu_dy(copy_to(stream, dy)),
        gpu_weight(copy_to(stream, weight)),
        gpu_bias(copy_to(stream, bias)) {}
  Tensor x, dy, weight, bias, gpu_x, gpu_dy, gpu_weight, gpu_bias;
};

void expect_gradients(const NormGradients& actual, const NormGradients& expected,
                      std::int64_t rows) {
  expect_agrees(actual.features, expected.features, kWork, 16, "gradient of the features");
  expect_agrees(actual.weight, expected.weight, kWork, 8 * sum_of(rows), "gradient of the weight");
  expect_agrees(actual.bias, expected.bias, kWork, sum_of(rows), "gradient of the bias");
}

void expect_normalized(const Normalized& actual, const Normalized& expected) {
  expect_agrees(actual.mean, expected.mean, kWork, 5, "mean");
  expect_agrees(actual.inverse_deviation, expected.inverse_deviation, kWork, 8,
                "inverse deviation");
  expect_agrees(actual.output, expected.output, kWork, 16, "output");
}

TEST(NormsGpu, train_a_batch_norm) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const Problem& problem : kProblems) {
    for (const DType type : kDeviceTypes) {
      const Inputs in(problem, type, stream);
      Tensor mean = chance_tensor({problem.channels}, DType::f32, 5);
      Tensor variance = chance_tensor({problem.channels}, DType::f32, 6, 0.5, 1.5);
      Tensor gpu_mean = copy_to(stream, mean);
      Tensor gpu_variance = copy_to(stream, variance);
      const Normalized expected =
          batch_norm_training(in.x, in.weight, in.bias, mean.view(), variance.view());
      expect_normalized(batch_norm_training(in.gpu_x, in.gpu_weight, in.gpu_bias, gpu_mean.view(),
                                            gpu_variance.view()),
                        expected);
      expect_agrees(gpu_mean, mean, kWork, 5, "running mean");
      expect_agrees(gpu_variance, variance, kWork, 2, "running variance");
      const std::int64_t rows = problem.rows;
      expect_gradients(batch_norm_training_gradient(in.gpu_x, in.gpu_dy, in.gpu_weight,
                                                    copy_to(stream, expected.mean),
                                                    copy_to(stream, expected.inverse_deviation)),
                       batch_norm_training_gradient(in.x, in.dy, in.weight, expected.mean,
                                                    expected.inverse_deviation),
                       rows);
      expect_agrees(batch_norm_inference(in.gpu_x, gpu_mean, gpu_variance, in.gpu_weight, {}),
                    batch_norm_inference(in.x, mean, variance, in.weight, {}), kWork, 16,
                    "inference");
      expect_gradients(
          batch_norm_inference_gradient(in.gpu_x, in.gpu_dy, gpu_mean, gpu_variance, in.gpu_weight),
          batch_norm_inference_gradient(in.x, in.dy, mean, variance, in.weight), rows);
    }
  }
}

TEST(NormsGpu, join_a_residual_pass_a_relu_and_count_batches) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const Problem& problem : {Problem{33, 3}, {300, 100}, {4001, 32}}) {
    for (const DType type : kDeviceTypes) {
      const Inputs in(problem, type, stream);
      const Tensor residual = chance_tensor(in.x.shape(), type, 7);
      const Tensor gpu_residual = copy_to(stream, residual);
      Tensor batches({1}, DType::i64);
      *batches.data<std::int64_t>() = 6;
      Tensor gpu_batches = copy_to(stream, batches);
      for (const bool with_residual : {false, true}) {
        const auto added = [&](const Tensor& tensor) {
          return with_residual ? tensor.view() : ConstTensorView();
        };
        const Normalized expected =
            batch_norm_training(in.x, in.weight, in.bias, {}, {}, {.batches = batches.view()},
                                {.residual = added(residual), .relu = true});
        const Normalized made = batch_norm_training(
            in.gpu_x, in.gpu_weight, in.gpu_bias, {}, {}, {.batches = gpu_batches.view()},
            {.residual = added(gpu_residual), .relu = true});
        expect_agrees(made.mean, expected.mean, kWork, 5, "mean");
        // The CPU rounds what the residual is added to.
        const double unit = type == DType::bf16 ? 0x1p-8 : type == DType::f16 ? 0x1p-11 : 0x1p-24;
        const double work = with_residual ? kWork + unit / 0x1p-24 : kWork;
        expect_agrees(made.output, expected.output, work, 16, "output");
        // The same output on both sides, so that no gradient passes on one alone.
        const NormGradients gradients = batch_norm_training_gradient(
            in.gpu_x, in.gpu_dy, in.gpu_weight, copy_to(stream, expected.mean),
            copy_to(stream, expected.inverse_deviation),
            {.output = copy_to(stream, expected.output), .residual = with_residual});
        const NormGradients wanted = batch_norm_training_gradient(
            in.x, in.dy, in.weight, expected.mean, expected.inverse_deviation,
            {.output = expected.output, .residual = with_residual});
        expect_gradients(gradients, wanted, problem.rows);
        if (with_residual)
          expect_agrees(gradients.residual, wanted.residual, 1, 1, "gradient of the residual");
      }
      EXPECT_EQ(*batches.data<std::int64_t>(), 8);
      EXPECT_EQ(*back(gpu_batches).data<std::int64_t>(), 8);
    }
  }
}

TEST(NormsGpu, give_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Inputs in({65537, 20}, DType::f16, stream);
  const Normalized first = batch_norm_training(in.gpu_x, in.gpu_weight, in.gpu_bias, {}, {});
  for (int i = 0; i < 10; ++i) {
    const Normalized again = batch_norm_training(in.gpu_x, in.gpu_weight, in.gpu_bias, {}, {});
    ASSERT_TRUE(same_bits(back(again.mean), back(first.mean)));
    ASSERT_TRUE(same_bits(back(again.inverse_deviation), back(first.inverse_deviation)));
    ASSERT_TRUE(same_bits(back(again.output), back(first.output)));
  }
}

TEST(NormsGpu, normalize_single_rows_and_batch_items) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const Problem& problem : kProblems) {
    for (const DType type : kDeviceTypes) {
      const Inputs in(problem, type, stream);
      const std::int64_t rows = problem.rows;
      const Normalized expected = layer_norm(in.x, in.weight, in.bias);
      const Normalized actual = layer_norm(in.gpu_x, in.gpu_weight, in.gpu_bias);
      expect_normalized(actual, expected);
      expect_gradients(
          layer_norm_gradient(in.gpu_x, in.gpu_dy, in.gpu_weight, copy_to(stream, expected.mean),
                              copy_to(stream, expected.inverse_deviation)),
          layer_norm_gradient(in.x, in.dy, in.weight, expected.mean, expected.inverse_deviation),
          rows);
      if (problem.rows > 0 && problem.rows < 300) continue;   // an item may have a single row
      const CoordinateSetPtr set = chance_set(problem.rows, 7);
      const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
      const Normalized items = instance_norm(in.x, *set, in.weight, in.bias);
      expect_normalized(instance_norm(in.gpu_x, *gpu_set, in.gpu_weight, in.gpu_bias), items);
      expect_gradients(
          instance_norm_gradient(in.gpu_x, in.gpu_dy, *gpu_set, in.gpu_weight,
                                 copy_to(stream, items.mean),
                                 copy_to(stream, items.inverse_deviation)),
          instance_norm_gradient(in.x, in.dy, *set, in.weight, items.mean, items.inverse_deviation),
          rows);
    }
  }
}

TEST(ActivationsGpu, agree_with_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : kSizes) {
    for (const DType type : kDeviceTypes) {
      const Tensor x = chance_tensor({rows, 3}, type, 1, -4, 4);
      const Tensor dy = chance_tensor({rows, 3}, type, 2);
      for (const Activation activation :
           {Activation::none, Activation::relu, Activation::leaky_relu, Activation::silu,
            Activation::gelu, Activation::sigmoid, Activation::tanh}) {
        const Tensor gpu_x = copy_to(stream, x);
        // A few units in the last place on either side.
        const Tensor expected = activate(x, activation, 0.1);
        expect_agrees(activate(gpu_x, activation, 0.1), expected, 32, 4, "activation");
        expect_agrees(activation_gradient(gpu_x, copy_to(stream, dy), activation, 0.1),
                      activation_gradient(x, dy, activation, 0.1), 32, 4, "gradient");
        Tensor changed = gpu_x;
        activate_in_place(changed.view(), activation, 0.1);
        expect_agrees(changed, expected, 32, 4, "in place");
      }
    }
  }
}

TEST(NormsGpu, refuse_what_lies_elsewhere) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Inputs in({33, 8}, DType::f32, stream);
  expect_sentence([&] { batch_norm_training(in.gpu_x, in.weight, {}, {}, {}); },
                  {"batch_norm_training", "weight is on cpu", "features on cuda:0"});
  expect_sentence([&] { layer_norm_gradient(in.gpu_x, in.dy, {}, in.weight, in.weight); },
                  {"layer_norm_gradient", "grad_output is on cpu"});
  const CoordinateSetPtr set = chance_set(33, 7);
  expect_sentence([&] { instance_norm(in.gpu_x, *set, {}, {}); },
                  {"instance_norm", "coordinate set on cpu"});
  expect_sentence([&] { layer_norm(copy_to(stream, in.x.to(DType::f64)), {}, {}); },
                  {"layer_norm", "f64", "f32, f16 or bf16"});
}

}   // namespace
}   // namespace pumice
