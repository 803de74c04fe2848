// Activations against the C library in long double.
#include <pumice/ops/activation.hpp>

#include <cstdint>

#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

constexpr Activation kAll[] = {Activation::none, Activation::relu, Activation::leaky_relu,
                               Activation::silu, Activation::gelu, Activation::sigmoid,
                               Activation::tanh};
constexpr double kSlope = 0.2;

long double sigmoid(long double x) {
  return 1 / (1 + std::exp(-x));
}
long double normal(long double x) {
  return std::erfc(-x / std::sqrt(2.0L)) / 2;
}

long double value_of(Activation activation, long double x) {
  switch (activation) {
    case Activation::none: return x;
    case Activation::relu: return x > 0 ? x : 0;
    case Activation::leaky_relu: return x > 0 ? x : static_cast<long double>(kSlope) * x;
    case Activation::silu: return x * sigmoid(x);
    case Activation::gelu: return x * normal(x);
    case Activation::sigmoid: return sigmoid(x);
    case Activation::tanh: return std::tanh(x);
  }
  return 0;
}

long double derivative_of(Activation activation, long double x) {
  const long double s = sigmoid(x);
  switch (activation) {
    case Activation::none: return 1;
    case Activation::relu: return x > 0 ? 1 : 0;
    case Activation::leaky_relu: return x > 0 ? 1 : static_cast<long double>(kSlope);
    case Activation::silu: return s + x * s * sigmoid(-x);
    case Activation::gelu:
      return normal(x) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0L));
    case Activation::sigmoid: return s * sigmoid(-x);
    case Activation::tanh: return 4 * sigmoid(2 * x) * sigmoid(-2 * x);
  }
  return 0;
}

TEST(Activation, agrees_with_long_double_at_all_sizes_and_types) {
  for (const std::int64_t size : kSizes) {
    for (const DType type : kFloating) {
      const Tensor x = chance_tensor({size, 1}, type, 1, -12, 12);
      const Tensor g = chance_tensor({size, 1}, type, 2);
      for (const Activation activation : kAll) {
        SCOPED_TRACE(static_cast<int>(activation));
        Matrix value = matrix_of(x), gradient = matrix_of(g);
        for (std::size_t i = 0; i < value.values.size(); ++i) {
          gradient.values[i] *= static_cast<double>(derivative_of(activation, value.values[i]));
          value.values[i] = static_cast<double>(value_of(activation, value.values[i]));
        }
        // Four roundings of a value of at most 12. The derivatives are sums of two terms of at most
        // 1.3 that cancel where they pass through 0.
        expect_near(activate(x, activation, kSlope), value, 4, 12, "value");
        expect_near(activation_gradient(x, g, activation, kSlope), gradient, 12, 1.3, "gradient");
        Tensor same = x.clone();
        activate_in_place(same.view(), activation, kSlope);
        expect_equal(same, matrix_of(activate(x, activation, kSlope)), "in place");
      }
    }
  }
}

/// The unit in the last place of a float near `value`, 2^-149 for subnormal ones.
long double unit_of(long double value) {
  int exponent = 0;
  std::frexp(static_cast<double>(value), &exponent);
  return std::ldexp(1.0L, std::max(exponent - 24, -149));
}

TEST(Activation, float_functions_stay_within_four_units_in_the_last_place) {
  // Every 4096th float: a million arguments of all magnitudes.
  std::vector<float> arguments;
  for (std::uint64_t bits = 0; bits < 0x100000000u; bits += 4096) {
    const auto x = std::bit_cast<float>(static_cast<std::uint32_t>(bits));
    if (std::isfinite(x)) arguments.push_back(x);
  }
  const auto size = static_cast<std::int64_t>(arguments.size());
  const Tensor x = Tensor::from(std::span<const float>(arguments), {size, 1});
  for (const Activation activation :
       {Activation::sigmoid, Activation::tanh, Activation::silu, Activation::gelu}) {
    const bool product = activation == Activation::silu || activation == Activation::gelu;
    const Tensor y = activate(x, activation);
    long double worst = 0;
    float worst_at = 0;
    for (std::int64_t i = 0; i < size; ++i) {
      const long double argument = x.data<float>()[i];
      const long double expected = value_of(activation, argument);
      // x times a subnormal factor carries the factor's last bit x-fold.
      const long double carried = product ? std::abs(argument) * 0x1p-149L : 0;
      const long double off =
          (std::abs(y.data<float>()[i] - expected) - carried) / unit_of(expected);
      if (off <= worst) continue;
      worst = off;
      worst_at = x.data<float>()[i];
    }
    EXPECT_LE(worst, 4) << "activation " << static_cast<int>(activation) << " at " << worst_at;
    RecordProperty("worst_" + std::to_string(static_cast<int>(activation)), std::to_string(worst));
  }
}

TEST(Activation, special_values) {
  const float inf = INFINITY;
  const float values[] = {inf, -inf, NAN, 0.0f, -0.0f};
  const Tensor x = Tensor::from(std::span<const float>(values), {5, 1});
  const auto run = [&](Activation activation) {
    const Tensor y = activate(x, activation);
    EXPECT_TRUE(std::isnan(y.data<float>()[2])) << static_cast<int>(activation);
    return y;
  };
  EXPECT_EQ(run(Activation::relu).data<float>()[0], inf);
  EXPECT_EQ(run(Activation::relu).data<float>()[1], 0);
  for (const Activation activation : {Activation::silu, Activation::gelu}) {
    EXPECT_EQ(run(activation).data<float>()[0], inf);
    EXPECT_EQ(run(activation).data<float>()[1], 0);
  }
  EXPECT_EQ(run(Activation::tanh).data<float>()[1], -1);
  EXPECT_EQ(run(Activation::sigmoid).data<float>()[0], 1);
  const Tensor ones = Tensor::full({5, 1}, DType::f32, 1);
  for (const Activation activation : kAll) {
    const Tensor g = activation_gradient(x, ones, activation);
    EXPECT_FALSE(std::isnan(g.data<float>()[0])) << static_cast<int>(activation);
    EXPECT_FALSE(std::isnan(g.data<float>()[1])) << static_cast<int>(activation);
  }
  EXPECT_EQ(activation_gradient(x, ones, Activation::relu).data<float>()[3], 0);
}

TEST(Activation, gradients_are_central_differences) {
  const Tensor x = chance_tensor({65, 3}, DType::f64, 3, -3, 3);
  const Tensor g = chance_tensor({65, 3}, DType::f64, 4);
  for (const Activation activation : kAll) {
    expect_gradient([&](const Tensor& t) { return activate(t, activation, kSlope); }, x, g,
                    activation_gradient(x, g, activation, kSlope), "activation");
  }
}

TEST(Activation, threads_do_not_change_a_bit) {
  const Tensor x = chance_tensor({65537, 3}, DType::bf16, 1);
  expect_same_on_threads([&] {
    return std::vector<Tensor>{activate(x, Activation::gelu),
                               activation_gradient(x, x, Activation::silu)};
  });
}

TEST(Activation, wrong_arguments_are_sentences) {
  const Tensor x = chance_tensor({3, 3}, DType::f32, 1);
  expect_sentence([&] { activate(Tensor({3}, DType::i32), Activation::relu); }, {"i32", "f32"});
  expect_sentence([&] { activate(x, Activation::leaky_relu, NAN); }, {"slope"});
  expect_sentence(
      [&] {
        activation_gradient(x, chance_tensor({3, 2}, DType::f32, 1), Activation::relu);
      },
      {"grad_output", "[3, 2]", "[3, 3]"});
}

}   // namespace
}   // namespace pumice::test
