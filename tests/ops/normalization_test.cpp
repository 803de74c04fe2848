// Normalisation against float64 loops and PyTorch's rules for few rows.
#include <pumice/ops/normalization.hpp>

#include <limits>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

Matrix variance_of(const Tensor& inverse_deviation, double epsilon) {
  Matrix result = matrix_of(inverse_deviation);
  for (double& value : result.values)
    value = 1 / (value * value) - epsilon;
  return result;
}

/// Roundings in compute type of one normalised value. Values are at most 6, weights at most 2, and
/// the deviation at least 0.3: (x - mean) / deviation · weight grows a rounding of 6 to below 64.
constexpr double kWork = 8;
constexpr double kScale = 64;

TEST(BatchNorm, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    if (rows == 1) continue;
    for (const std::int64_t channels : {1, 3, 37, 100}) {
      if (rows > 1000 && channels > 3) continue;
      for (const DType type : kFloating) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels));
        const DType compute = compute_of(type);
        const Tensor x = chance_tensor({rows, channels}, type, 1, 2, 6);
        const Tensor g = chance_tensor({rows, channels}, type, 2);
        const Tensor weight = chance_tensor({channels}, compute, 3, 0.5, 2);
        const Tensor bias = chance_tensor({channels}, compute, 4);
        const reference::Rows one(static_cast<std::size_t>(rows), 0);
        const reference::Norm expected = reference::item_norm(
            matrix_of(x), one, 1, matrix_of(weight), matrix_of(bias), kNormEpsilon);
        Tensor mean = Tensor::full({channels}, compute, 0.25);
        Tensor variance = Tensor::full({channels}, compute, 1.5);
        const Normalized got =
            batch_norm_training(x, weight, bias, mean.view(), variance.view(), {.momentum = 0.25});
        expect_near(got.output, expected.output, kWork, kScale, "output");
        const reference::NormGradient wanted = reference::item_norm_gradient(
            matrix_of(x), matrix_of(g), one, 1, matrix_of(weight), kNormEpsilon);
        const NormGradients gradients =
            batch_norm_training_gradient(x, g, weight, got.mean, got.inverse_deviation);
        Tensor into_weight = Tensor::full({channels}, compute, 7);
        Tensor into_bias = Tensor::full({channels}, compute, 7);
        const NormGradients placed =
            batch_norm_training_gradient(x, g, weight, got.mean, got.inverse_deviation, {},
                                         {.weight = into_weight, .bias = into_bias});
        EXPECT_EQ(placed.weight.raw(), into_weight.raw());
        EXPECT_EQ(placed.bias.raw(), into_bias.raw());
        EXPECT_TRUE(
            std::equal(static_cast<const std::byte*>(into_weight.raw()),
                       static_cast<const std::byte*>(into_weight.raw()) + into_weight.bytes(),
                       static_cast<const std::byte*>(gradients.weight.raw())));
        EXPECT_TRUE(std::equal(static_cast<const std::byte*>(into_bias.raw()),
                               static_cast<const std::byte*>(into_bias.raw()) + into_bias.bytes(),
                               static_cast<const std::byte*>(gradients.bias.raw())));
        const auto n = static_cast<double>(std::max<std::int64_t>(1, rows));
        expect_near(gradients.features, wanted.input, kWork, kScale, "gradient");
        // Terms are summed in double; each carries the rounding of mean and of x - mean.
        expect_near(gradients.weight, wanted.weight, n, kScale, "weight gradient");
        expect_near(gradients.bias, wanted.bias, type == DType::f64 ? n : 1, 1, "bias gradient");
        if (rows == 0) {
          expect_equal(mean, Matrix(1, channels, 0.25), "running mean stays");
          expect_equal(variance, Matrix(1, channels, 1.5), "running variance stays");
          continue;
        }
        expect_near(got.mean, expected.mean, 2 + (type == DType::f64 ? n : 0), 6, "mean");
        Matrix running_mean(1, channels), running_variance(1, channels);
        for (std::int64_t c = 0; c < channels; ++c) {
          running_mean.at(0, c) = 0.75 * 0.25 + 0.25 * expected.mean.at(0, c);
          running_variance.at(0, c) = 0.75 * 1.5 + 0.25 * expected.variance.at(0, c) * n / (n - 1);
        }
        const double work = type == DType::f64 ? n : 2;
        expect_near(mean, running_mean, work, 6, "running mean");
        expect_near(variance, running_variance, work, 6, "running variance, unbiased");
      }
    }
  }
}

TEST(BatchNorm, a_large_offset_costs_no_accuracy_of_the_variance) {
  // Mean 4096 and deviation 0.29: squares summed in float would lose the variance altogether.
  const Tensor x = chance_tensor({65537, 2}, DType::f32, 1, 4096, 4097);
  const reference::Rows one(65537, 0);
  const reference::Norm expected =
      reference::item_norm(matrix_of(x), one, 1, Matrix(1, 2, 1), Matrix(1, 2), 0);
  const Normalized got = batch_norm_training(x, {}, {}, {}, {}, {.epsilon = 0});
  const Matrix variance = variance_of(got.inverse_deviation, 0);
  for (std::int64_t c = 0; c < 2; ++c) {
    EXPECT_NEAR(variance.at(0, c), expected.variance.at(0, c), 1e-7);
  }
}

TEST(BatchNorm, inference_uses_the_given_statistics) {
  for (const std::int64_t rows : kSizes) {
    for (const DType type : kFloating) {
      const std::int64_t channels = 5;
      const DType compute = compute_of(type);
      const Tensor x = chance_tensor({rows, channels}, type, 1);
      const Tensor g = chance_tensor({rows, channels}, type, 2);
      const Tensor mean = chance_tensor({channels}, compute, 3);
      const Tensor variance = chance_tensor({channels}, compute, 4, 0.5, 2);
      const Tensor weight = chance_tensor({channels}, compute, 5);
      const Tensor bias = chance_tensor({channels}, compute, 6);
      const Matrix m = matrix_of(mean), v = matrix_of(variance), w = matrix_of(weight),
                   b = matrix_of(bias), grads = matrix_of(g);
      Matrix output = matrix_of(x), input(rows, channels), to_weight(1, channels),
             to_bias(1, channels);
      for (std::int64_t r = 0; r < rows; ++r) {
        for (std::int64_t c = 0; c < channels; ++c) {
          const double scale = 1 / std::sqrt(v.at(0, c) + 0.125);
          const double plain = (output.at(r, c) - m.at(0, c)) * scale;
          output.at(r, c) = plain * w.at(0, c) + b.at(0, c);
          const double grad = grads.at(r, c);
          input.at(r, c) = grad * scale * w.at(0, c);
          to_weight.at(0, c) += grad * plain;
          to_bias.at(0, c) += grad;
        }
      }
      const auto n = static_cast<double>(std::max<std::int64_t>(1, rows));
      expect_near(batch_norm_inference(x, mean, variance, weight, bias, 0.125), output, 8, 4,
                  "output");
      const NormGradients got = batch_norm_inference_gradient(x, g, mean, variance, weight, 0.125);
      expect_near(got.features, input, 6, 2, "gradient");
      expect_near(got.weight, to_weight, 6 * n, 3, "weight gradient");
      expect_near(got.bias, to_bias, n, 1, "bias gradient");
    }
  }
}

TEST(LayerNorm, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    for (const std::int64_t channels : {2, 37, 1100}) {
      if (rows > 1000 && channels > 2) continue;
      for (const DType type : kFloating) {
        SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels));
        const DType compute = compute_of(type);
        // Two channels may be as close as they like: epsilon bounds the growth, 1 / √0.25.
        const double epsilon = 0.25;
        const Tensor x = chance_tensor({rows, channels}, type, 1, 2, 6);
        const Tensor g = chance_tensor({rows, channels}, type, 2);
        const Tensor weight = chance_tensor({channels}, compute, 3, 0.5, 2);
        const Tensor bias = chance_tensor({channels}, compute, 4);
        const reference::Norm expected =
            reference::row_norm(matrix_of(x), matrix_of(weight), matrix_of(bias), epsilon);
        const Normalized got = layer_norm(x, weight, bias, epsilon);
        const auto n = static_cast<double>(std::max<std::int64_t>(1, rows));
        expect_near(got.output, expected.output, kWork, kScale, "output");
        const reference::NormGradient wanted =
            reference::row_norm_gradient(matrix_of(x), matrix_of(g), matrix_of(weight), epsilon);
        const NormGradients gradients =
            layer_norm_gradient(x, g, weight, got.mean, got.inverse_deviation);
        expect_near(gradients.features, wanted.input, kWork, kScale, "gradient");
        expect_near(gradients.weight, wanted.weight, 4 * n, 12, "weight gradient");
        expect_near(gradients.bias, wanted.bias, type == DType::f64 ? n : 1, 1, "bias gradient");
      }
    }
  }
}

TEST(InstanceNorm, agrees_with_loops_at_all_sizes_and_types) {
  for (const std::int64_t rows : kSizes) {
    if (rows == 1) continue;
    for (const bool shuffled : {true, false}) {
      const CoordinateSetPtr set = chance_set(rows, 3, 3, shuffled);
      const reference::Rows items = items_of(*set);
      for (const DType type : kFloating) {
        const std::int64_t channels = rows > 1000 ? 3 : 20;
        const DType compute = compute_of(type);
        const Tensor x = chance_tensor({rows, channels}, type, 1, 2, 6);
        const Tensor g = chance_tensor({rows, channels}, type, 2);
        const Tensor weight = chance_tensor({channels}, compute, 3, 0.5, 2);
        const Tensor bias = chance_tensor({channels}, compute, 4);
        const reference::Norm expected = reference::item_norm(
            matrix_of(x), items, 5, matrix_of(weight), matrix_of(bias), kNormEpsilon);
        const Normalized got = instance_norm(x, *set, weight, bias);
        expect_near(got.output, expected.output, kWork, kScale, "output");
        const auto n = static_cast<double>(std::max<std::int64_t>(1, rows));
        expect_near(got.mean, expected.mean, 2 + (type == DType::f64 ? n : 0), 6, "mean");
        const reference::NormGradient wanted = reference::item_norm_gradient(
            matrix_of(x), matrix_of(g), items, 5, matrix_of(weight), kNormEpsilon);
        const NormGradients gradients =
            instance_norm_gradient(x, g, *set, weight, got.mean, got.inverse_deviation);
        expect_near(gradients.features, wanted.input, kWork, kScale, "gradient");
        expect_near(gradients.weight, wanted.weight, n, kScale, "weight gradient");
        expect_near(gradients.bias, wanted.bias, n, 1, "bias gradient");
      }
    }
  }
}

TEST(Normalization, gradients_are_central_differences) {
  const CoordinateSetPtr set = chance_set(31, 4);
  const Tensor x = chance_tensor({31, 4}, DType::f64, 1);
  const Tensor g = chance_tensor({31, 4}, DType::f64, 2);
  const Tensor weight = chance_tensor({4}, DType::f64, 3);
  const Tensor bias = chance_tensor({4}, DType::f64, 4);
  const Tensor variance = chance_tensor({4}, DType::f64, 5, 0.5, 1);
  using Run = std::function<Tensor(const Tensor&, const Tensor&, const Tensor&)>;
  const auto check = [&](const char* what, const NormGradients& got, const Run& run) {
    expect_gradient([&](const Tensor& t) { return run(t, weight, bias); }, x, g, got.features,
                    what);
    expect_gradient([&](const Tensor& t) { return run(x, t, bias); }, weight, g, got.weight, what);
    expect_gradient([&](const Tensor& t) { return run(x, weight, t); }, bias, g, got.bias, what);
  };
  const Normalized batch = batch_norm_training(x, weight, bias, {}, {});
  check("batch norm",
        batch_norm_training_gradient(x, g, weight, batch.mean, batch.inverse_deviation),
        [&](const Tensor& t, const Tensor& w, const Tensor& b) {
          return batch_norm_training(t, w, b, {}, {}).output;
        });
  check("batch norm, inference", batch_norm_inference_gradient(x, g, bias, variance, weight),
        [&](const Tensor& t, const Tensor& w, const Tensor& b) {
          return batch_norm_inference(t, bias, variance, w, b);
        });
  const Normalized layer = layer_norm(x, weight, bias);
  check("layer norm", layer_norm_gradient(x, g, weight, layer.mean, layer.inverse_deviation),
        [&](const Tensor& t, const Tensor& w, const Tensor& b) {
          return layer_norm(t, w, b).output;
        });
  const Normalized instance = instance_norm(x, *set, weight, bias);
  check("instance norm",
        instance_norm_gradient(x, g, *set, weight, instance.mean, instance.inverse_deviation),
        [&](const Tensor& t, const Tensor& w, const Tensor& b) {
          return instance_norm(t, *set, w, b).output;
        });
}

TEST(Normalization, absent_parameters_are_one_and_zero) {
  const Tensor x = chance_tensor({33, 5}, DType::f32, 1);
  const Tensor one = Tensor::full({5}, DType::f32, 1);
  const Tensor zero = Tensor::zeros({5}, DType::f32);
  expect_equal(layer_norm(x, {}, {}).output, matrix_of(layer_norm(x, one, zero).output), "layer");
  expect_equal(batch_norm_training(x, {}, {}, {}, {}).output,
               matrix_of(batch_norm_training(x, one, zero, {}, {}).output), "batch");
}

/// Of the features' type: the same as the same numbers in the compute type, rounded where written.
TEST(BatchNorm, parameters_of_the_features_type_are_those_widened) {
  for (const DType type : {DType::f16, DType::bf16}) {
    const Tensor x = chance_tensor({33, 5}, type, 1, 2, 6);
    const Tensor g = chance_tensor({33, 5}, type, 2);
    const Tensor weight = chance_tensor({5}, type, 3, 0.5, 2);
    const Tensor bias = chance_tensor({5}, type, 4);
    Tensor mean = chance_tensor({5}, type, 5);
    Tensor variance = chance_tensor({5}, type, 6, 0.5, 2);
    const Tensor wide_weight = weight.to(DType::f32);
    Tensor wide_mean = mean.to(DType::f32);
    Tensor wide_variance = variance.to(DType::f32);
    const Normalized got = batch_norm_training(x, weight, bias, mean.view(), variance.view());
    const Normalized wide = batch_norm_training(x, wide_weight, bias.to(DType::f32),
                                                wide_mean.view(), wide_variance.view());
    expect_equal(got.output, matrix_of(wide.output), "output");
    expect_equal(mean, matrix_of(wide_mean.to(type)), "running mean");
    expect_equal(variance, matrix_of(wide_variance.to(type)), "running variance");
    const NormGradients of =
        batch_norm_training_gradient(x, g, weight, got.mean, got.inverse_deviation);
    const NormGradients wide_of =
        batch_norm_training_gradient(x, g, wide_weight, got.mean, got.inverse_deviation);
    EXPECT_EQ(of.weight.dtype(), type);
    expect_equal(of.features, matrix_of(wide_of.features), "gradient");
    expect_equal(of.weight, matrix_of(wide_of.weight.to(type)), "gradient of the weight");
    expect_equal(of.bias, matrix_of(wide_of.bias.to(type)), "gradient of the bias");
    Tensor places[2] = {Tensor({5}, type), Tensor({5}, type)};
    batch_norm_training_gradient(x, g, weight, got.mean, got.inverse_deviation, {},
                                 {.weight = places[0], .bias = places[1]});
    expect_equal(places[0], matrix_of(of.weight), "gradient of the weight, placed");
    expect_equal(places[1], matrix_of(of.bias), "gradient of the bias, placed");
    expect_sentence([&] { batch_norm_training(x, weight, wide_weight, {}, {}); }, {"bias", "f32"});
    expect_sentence([&] { batch_norm_training(x, {}, {}, mean.view(), wide_mean.view()); },
                    {"running_variance", "f32"});
  }
}

TEST(Normalization, threads_do_not_change_a_bit) {
  const CoordinateSetPtr set = chance_set(65537, 8);
  const Tensor x = chance_tensor({65537, 7}, DType::f32, 1);
  const Tensor g = chance_tensor({65537, 7}, DType::f32, 2);
  expect_same_on_threads([&] {
    const Normalized batch = batch_norm_training(x, {}, {}, {}, {});
    const NormGradients one =
        batch_norm_training_gradient(x, g, {}, batch.mean, batch.inverse_deviation);
    const Normalized layer = layer_norm(x, {}, {});
    const NormGradients two = layer_norm_gradient(x, g, {}, layer.mean, layer.inverse_deviation);
    const Normalized instance = instance_norm(x, *set, {}, {});
    const NormGradients three =
        instance_norm_gradient(x, g, *set, {}, instance.mean, instance.inverse_deviation);
    return std::vector<Tensor>{batch.output,    one.features,   one.weight,   one.bias,
                               layer.output,    two.features,   two.weight,   two.bias,
                               instance.output, three.features, three.weight, three.bias};
  });
}

TEST(Normalization, what_cannot_be_normalised_is_a_sentence) {
  const Tensor x = chance_tensor({1, 3}, DType::f32, 1);
  expect_sentence([&] { batch_norm_training(x, {}, {}, {}, {}); },
                  {"1 row", "variance", "model.eval()"});
  const CoordinateSetPtr set = chance_set(1, 1);
  expect_sentence([&] { instance_norm(x, *set, {}, {}); }, {"batch item", "1 row"});
  const Tensor many = chance_tensor({9, 3}, DType::f16, 1);
  expect_sentence([&] { layer_norm(many, chance_tensor({4}, DType::f32, 1), {}); },
                  {"weight", "[4]", "[3]"});
  expect_sentence([&] { layer_norm(many, chance_tensor({3}, DType::f16, 1), {}); },
                  {"weight", "f16", "must be f32"});
  expect_sentence([&] { layer_norm(many, {}, {}, -1); }, {"epsilon = -1"});
  expect_sentence([&] { batch_norm_training(many, {}, {}, {}, {}, {.momentum = 2}); },
                  {"momentum = 2"});
  expect_sentence([&] { layer_norm(Tensor({4, 0}, DType::f32), {}, {}); }, {"no channels"});
}

// ---- relu(norm + residual) in one pass: nothing here is taken from the library but the numbers it
// is given. 4,001 rows are more chunks than one.
constexpr std::int64_t kFusedRows[] = {0, 31, 33, 4001};
constexpr std::int64_t kFusedChannels[] = {1, 3, 37};

/// A batch norm in training with what follows it, and its reference.
struct FusedNorm {
  FusedNorm(std::int64_t rows, std::int64_t channels, DType of)
      : type(of),
        x(chance_tensor({rows, channels}, type, 1, 2, 6)),
        residual(chance_tensor({rows, channels}, type, 2, -3, 3)),
        grad(chance_tensor({rows, channels}, type, 3)),
        weight(chance_tensor({channels}, compute_of(type), 4, 0.5, 2)),
        bias(chance_tensor({channels}, compute_of(type), 5)),
        plain(reference::item_norm(matrix_of(x), items(), 1, matrix_of(weight), matrix_of(bias),
                                   kNormEpsilon)) {}

  reference::Rows items() const { return reference::Rows(static_cast<std::size_t>(x.rows()), 0); }

  /// The engine rounds the norm to the features' type, adds the residual in the compute type, and
  /// rounds again where it stores; a ReLU makes no difference of two numbers larger. `plain` went
  /// through kWork roundings of values of at most kScale, as a norm alone.
  void expect_output(const Tensor& actual, bool with_residual, bool relu) const {
    ASSERT_EQ(actual.dtype(), type);
    const Matrix got = matrix_of(actual);
    Matrix expected = plain.output;
    if (with_residual) expected = reference::elementwise(expected, matrix_of(residual), '+');
    ASSERT_EQ(got.rows, expected.rows);
    ASSERT_EQ(got.columns, expected.columns);
    const double stored = rounding_of(type);
    const double computed = rounding_of(compute_of(type)) * kWork * kScale;
    const double least = type == DType::f16 ? 0x1p-24 : 0;   // half a subnormal, twice
    for (std::size_t i = 0; i < got.values.size(); ++i) {
      const double wanted = relu && expected.values[i] < 0 ? 0 : expected.values[i];
      const double roundings =
          std::abs(expected.values[i]) + (with_residual ? std::abs(plain.output.values[i]) : 0);
      ASSERT_NEAR(got.values[i], wanted, (stored * roundings + computed) * (1 + stored) + least)
          << "element " << i;
    }
  }

  /// `output` decides what passes: an output close to 0 may lie on either side of it.
  void expect_gradients(const NormGradients& got, const Tensor* output, bool with_residual) const {
    Matrix passed = matrix_of(grad);
    if (output != nullptr) {
      const Matrix decides = matrix_of(*output);
      for (std::size_t i = 0; i < passed.values.size(); ++i)
        if (decides.values[i] <= 0) passed.values[i] = 0;
    }
    const reference::NormGradient wanted = reference::item_norm_gradient(
        matrix_of(x), passed, items(), 1, matrix_of(weight), kNormEpsilon);
    const auto n = static_cast<double>(std::max<std::int64_t>(1, x.rows()));
    expect_near(got.features, wanted.input, kWork, kScale, "gradient");
    // As of a norm alone: terms are summed in double, each with the rounding of mean and x - mean.
    expect_near(got.weight, wanted.weight, n, kScale, "weight gradient");
    expect_near(got.bias, wanted.bias, type == DType::f64 ? n : 1, 1, "bias gradient");
    ASSERT_EQ(got.residual.defined(), with_residual);
    if (with_residual) expect_equal(got.residual, passed, "gradient of the residual");
  }

  DType type;
  Tensor x, residual, grad, weight, bias;
  reference::Norm plain;
};

TEST(FusedBatchNorm, adds_a_residual_and_passes_a_relu_as_loops_do) {
  for (const std::int64_t rows : kFusedRows) {
    for (const std::int64_t channels : kFusedChannels) {
      for (const DType type : kFloating) {
        const FusedNorm norm(rows, channels, type);
        for (const bool with_residual : {false, true}) {
          for (const bool relu : {false, true}) {
            SCOPED_TRACE(std::to_string(rows) + " x " + std::to_string(channels) + " " +
                         std::string(name_of(type)) + (with_residual ? " + residual" : "") +
                         (relu ? ", relu" : ""));
            const Normalized got = batch_norm_training(
                norm.x, norm.weight, norm.bias, {}, {}, {},
                {.residual = with_residual ? norm.residual.view() : ConstTensorView(),
                 .relu = relu});
            norm.expect_output(got.output, with_residual, relu);
            const NormGradients gradients = batch_norm_training_gradient(
                norm.x, norm.grad, norm.weight, got.mean, got.inverse_deviation,
                {.output = relu ? got.output.view() : ConstTensorView(),
                 .residual = with_residual});
            norm.expect_gradients(gradients, relu ? &got.output : nullptr, with_residual);
            if (::testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

/// Statistics, and what is kept of them, are those of the norm alone: bit for bit.
TEST(FusedBatchNorm, takes_its_statistics_of_the_features_alone) {
  for (const DType type : kFloating) {
    const FusedNorm norm(33, 3, type);
    const auto run = [&](const AfterNorm& after) {
      Tensor mean = Tensor::full({3}, compute_of(type), 0.25);
      Tensor variance = Tensor::full({3}, compute_of(type), 1.5);
      Tensor batches = Tensor::full({1}, DType::i64, 6);
      const Normalized got =
          batch_norm_training(norm.x, norm.weight, norm.bias, mean.view(), variance.view(),
                              {.batches = batches.view()}, after);
      EXPECT_EQ(*batches.data<std::int64_t>(), 7);
      return std::vector<Tensor>{got.mean, got.inverse_deviation, mean, variance};
    };
    const std::vector<Tensor> alone = run({});
    const std::vector<Tensor> fused = run({.residual = norm.residual, .relu = true});
    for (std::size_t i = 0; i < alone.size(); ++i)
      expect_equal(fused[i], matrix_of(alone[i]), "statistics");
    expect_near(fused[0], norm.plain.mean, 2 + (type == DType::f64 ? 33 : 0), 6, "mean");
  }
}

/// Where the sum is not exactly 0 a ReLU has a slope.
TEST(FusedBatchNorm, gradients_are_central_differences) {
  const FusedNorm norm(31, 4, DType::f64);
  const auto run = [&](const Tensor& x, const Tensor& residual) {
    return batch_norm_training(x, norm.weight, norm.bias, {}, {}, {},
                               {.residual = residual, .relu = true});
  };
  const Normalized got = run(norm.x, norm.residual);
  const NormGradients gradients =
      batch_norm_training_gradient(norm.x, norm.grad, norm.weight, got.mean, got.inverse_deviation,
                                   {.output = got.output, .residual = true});
  expect_gradient([&](const Tensor& t) { return run(t, norm.residual).output; }, norm.x, norm.grad,
                  gradients.features, "features");
  expect_gradient([&](const Tensor& t) { return run(norm.x, t).output; }, norm.residual, norm.grad,
                  gradients.residual, "residual");
}

TEST(FusedBatchNorm, threads_do_not_change_a_bit) {
  const FusedNorm norm(4001, 37, DType::bf16);   // nine chunks of 16,384 elements
  expect_same_on_threads([&] {
    const Normalized got = batch_norm_training(norm.x, norm.weight, norm.bias, {}, {}, {},
                                               {.residual = norm.residual, .relu = true});
    const NormGradients gradients = batch_norm_training_gradient(
        norm.x, norm.grad, norm.weight, got.mean, got.inverse_deviation,
        {.output = got.output, .residual = true});
    return std::vector<Tensor>{got.output,           gradients.features, gradients.weight,
                               gradients.bias,       gradients.residual, got.mean,
                               got.inverse_deviation};
  });
}

TEST(FusedBatchNorm, a_nan_is_none_of_a_relus_zeros) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  FusedNorm norm(31, 1, DType::f32);
  norm.residual.data<float>()[7] = nan;
  const Normalized got = batch_norm_training(norm.x, norm.weight, norm.bias, {}, {}, {},
                                             {.residual = norm.residual, .relu = true});
  for (std::int64_t i = 0; i < 31; ++i)
    EXPECT_EQ(std::isnan(got.output.data<float>()[i]), i == 7) << i;
}

TEST(FusedBatchNorm, what_does_not_fit_is_a_sentence) {
  const FusedNorm one(1, 3, DType::f32);
  expect_sentence(
      [&] {
        batch_norm_training(one.x, {}, {}, {}, {}, {}, {.residual = one.residual, .relu = true});
      },
      {"1 row", "variance", "model.eval()"});
  const FusedNorm norm(33, 3, DType::f32);
  expect_sentence([&] { batch_norm_training(norm.x, {}, {}, {}, {}, {}, {.residual = one.x}); },
                  {"residual", "[1, 3]", "[33, 3]"});
  const Tensor narrow = norm.residual.to(DType::f16);
  expect_sentence([&] { batch_norm_training(norm.x, {}, {}, {}, {}, {}, {.residual = narrow}); },
                  {"residual", "f16", "f32"});
  const Normalized got = batch_norm_training(norm.x, {}, {}, {}, {}, {}, {.relu = true});
  expect_sentence(
      [&] {
        batch_norm_training_gradient(norm.x, norm.grad, {}, got.mean, got.inverse_deviation,
                                     {.output = narrow});
      },
      {"output", "f16", "f32"});
}

}   // namespace
}   // namespace pumice::test
