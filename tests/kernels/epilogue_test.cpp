// What happens to a sum on its way out: scale, shift, residual, activation, rounding.
#include <pumice/kernels/epilogue.hpp>

#include <cmath>
#include <limits>

#include <pumice/kernels/tile_mma.hpp>

#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
constexpr Activation kActivations[] = {Activation::none, Activation::relu, Activation::leaky_relu,
                                       Activation::silu, Activation::gelu, Activation::sigmoid,
                                       Activation::tanh};

double activated(double x, Activation activation, double slope) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::leaky_relu: return x > 0 ? x : slope * x;
    case Activation::silu: return x / (1 + std::exp(-x));
    case Activation::gelu: return x * 0.5 * std::erfc(-x / std::sqrt(2.0));
    case Activation::sigmoid: return 1 / (1 + std::exp(-x));
    case Activation::tanh: return std::tanh(x);
  }
  return 0;
}

DType compute_type(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// One output row per input row through the identity, so that a test chooses the sums.
Tensor through(const Tensor& sums, const Epilogue& epilogue) {
  const std::int64_t rows = sums.rows(), channels = sums.extent(1);
  Tensor identity = Tensor::zeros(Shape{1, channels, channels}, DType::f64);
  for (std::int64_t c = 0; c < channels; ++c)
    identity.data<double>()[c * channels + c] = 1;
  const WeightPanels weight(identity.to(sums.dtype()), 1, false);
  std::vector<std::int64_t> begin{0, rows};
  std::vector<std::int32_t> row(static_cast<std::size_t>(rows));
  std::iota(row.begin(), row.end(), 0);
  Tensor output(sums.shape(), sums.dtype());
  tile_mma({.input = sums,
            .weight = &weight,
            .tiles = {.tile_rows = std::max<std::int64_t>(rows, 1),
                      .tiles = 1,
                      .offsets = 1,
                      .out_rows = rows,
                      .begin = begin.data(),
                      .in = row.data(),
                      .local_out = row.data()},
            .epilogue = epilogue,
            .output = output.view()});
  return output;
}

TEST(Epilogue, scales_shifts_adds_and_activates_in_that_order) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t channels : {1, 7, 16, 33}) {
      const Tensor sums = random_tensor(Shape{9, channels}, dtype, 1);
      const Tensor scale = random_tensor(Shape{channels}, compute_type(dtype), 2);
      const Tensor shift = random_tensor(Shape{channels}, compute_type(dtype), 3);
      const Tensor residual = random_tensor(sums.shape(), dtype, 4);
      for (int parts = 0; parts < 8; ++parts) {
        for (const Activation activation : kActivations) {
          Epilogue epilogue;
          if (parts & 1) epilogue.scale = scale;
          if (parts & 2) epilogue.shift = shift;
          if (parts & 4) epilogue.residual = residual;
          epilogue.activation = activation;
          epilogue.slope = 0.25;
          Expected expected(static_cast<std::size_t>(9 * channels));
          const auto x = doubles(sums), a = doubles(scale), b = doubles(shift),
                     r = doubles(residual);
          for (std::size_t i = 0; i < x.size(); ++i) {
            const std::size_t c = i % static_cast<std::size_t>(channels);
            double y = x[i];
            if (parts & 1) y *= a[c];
            if (parts & 2) y += b[c];
            if (parts & 4) y += r[i];
            expected.value[i] = activated(y, activation, 0.25);
            // Arguments are at most 3 and no activation's slope is above 1.13.
            expected.magnitude[i] = 1.13 * 3 + std::abs(expected.value[i]);
          }
          SCOPED_TRACE(detail::concatenate(name_of(dtype), ", ", channels, " channels, parts ",
                                           parts, ", activation ", static_cast<int>(activation)));
          // Three roundings before the activation, up to 4 units in the last place inside it.
          expect_close(through(sums, epilogue), expected, 8);
        }
      }
    }
  }
}

TEST(Epilogue, stores_half_types_to_nearest_even_like_the_scalar_conversions) {
  // Sums that need rounding: exact products of 8-bit and 4-bit mantissas.
  constexpr std::int64_t kRows = 257, kChannels = 19;
  for (const DType dtype : {DType::f16, DType::bf16}) {
    const Tensor sums = random_tensor(Shape{kRows, kChannels}, dtype, 5);
    const Tensor scale = random_tensor(Shape{kChannels}, DType::f32, 6);
    Epilogue epilogue;
    epilogue.scale = scale;
    const Tensor actual = through(sums, epilogue);
    const Tensor wide = sums.to(DType::f32);
    Tensor product(sums.shape(), DType::f32);
    for (std::int64_t i = 0; i < product.elements(); ++i) {
      product.data<float>()[i] = wide.data<float>()[i] * scale.data<float>()[i % kChannels];
    }
    EXPECT_TRUE(same_bits(actual, product.to(dtype))) << name_of(dtype);
  }
}

TEST(Epilogue, never_hides_a_nan) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const DType dtype : kTypes) {
    for (const Activation activation : kActivations) {
      Epilogue epilogue;
      epilogue.activation = activation;
      for (const std::int64_t channels : {1, 8, 19}) {
        const Tensor actual =
            through(Tensor::full(Shape{2, channels}, dtype, nan), epilogue).to(DType::f64);
        for (const double value : actual.span<double>()) {
          EXPECT_TRUE(std::isnan(value)) << name_of(dtype) << ' ' << static_cast<int>(activation);
        }
      }
    }
  }
}

TEST(Epilogue, saturates_without_overflow) {
  for (const DType dtype : {DType::f64, DType::f32}) {
    const double large[] = {-1e30, -200, -90, 90, 200, 1e30};
    const Tensor sums = Tensor::from<double>(large, Shape{6, 1}).to(dtype);
    Epilogue epilogue;
    epilogue.activation = Activation::sigmoid;
    const std::vector<double> sigmoid = doubles(through(sums, epilogue));
    epilogue.activation = Activation::silu;
    const std::vector<double> silu = doubles(through(sums, epilogue));
    for (std::size_t i = 0; i < 6; ++i) {
      EXPECT_NEAR(sigmoid[i], large[i] < 0 ? 0 : 1, 1e-38);
      EXPECT_NEAR(silu[i], std::max(0.0, large[i]), 1e-7 * std::max(1e-30, large[i]));
    }
  }
}

TEST(Epilogue, refuses_vectors_and_residuals_that_do_not_fit) {
  const Tensor sums = random_tensor(Shape{3, 5}, DType::f16, 1);
  const Tensor short_scale = random_tensor(Shape{4}, DType::f32, 2);
  const Tensor half_shift = random_tensor(Shape{5}, DType::f16, 2);
  const Tensor residual = random_tensor(Shape{3, 5}, DType::f32, 2);
  EXPECT_THROW(through(sums, {.scale = short_scale}), UserError);
  EXPECT_THROW(through(sums, {.shift = half_shift}), UserError);
  EXPECT_THROW(through(sums, {.residual = residual}), UserError);
}

}   // namespace
}   // namespace pumice
