// One loop an activation.
#include "ops/cpu/activation.hpp"

#include <limits>

#include "ops/cpu/vector_math.hpp"
#include "ops/cpu/widened.hpp"

namespace pumice::cpu {
namespace {

constexpr double kInverseSqrtTwoPi = 0.39894228040143267794;

/// Calls body(value, derivative) with the two functions of one activation, of the compute type C.
template <class C, class Body>
void dispatch_activation(Activation activation, double slope_value, const Body& body) {
  const C slope = static_cast<C>(slope_value);
  constexpr C zero{0};
  constexpr C one{1};
  constexpr C infinity = std::numeric_limits<C>::infinity();
  switch (activation) {
    case Activation::none: return body([](C x) { return x; }, [](C) { return one; });
    case Activation::relu:
      return body([](C x) { return select(x < zero, zero, x); },
                  [](C x) { return select(x > zero, one, select(x <= zero, zero, x)); });
    case Activation::leaky_relu:
      return body([slope](C x) { return select(x < zero, slope * x, x); },
                  [slope](C x) { return select(x > zero, one, slope); });
    case Activation::silu:
      // -inf · 0 would be NaN; the limit is 0.
      return body([](C x) { return select(x == -infinity, zero, x * sigmoid_of(x)); },
                  [](C x) {
                    const C s = sigmoid_of(x);
                    return select(std::fabs(x) == infinity, s, s + x * s * sigmoid_of(-x));
                  });
    case Activation::gelu:
      return body([](C x) { return select(x == -infinity, zero, x * normal_distribution(x)); },
                  [](C x) {
                    const C density = static_cast<C>(kInverseSqrtTwoPi) * gauss_of(x);
                    const C distribution = normal_distribution(x);
                    return select(std::fabs(x) == infinity, distribution,
                                  distribution + x * density);
                  });
    case Activation::sigmoid:
      return body([](C x) { return sigmoid_of(x); },
                  [](C x) { return sigmoid_of(x) * sigmoid_of(-x); });
    case Activation::tanh:
      // 1 - tanh² cancels for large |x|; 4 s(2x) s(-2x) does not.
      return body([](C x) { return tanh_of(x); },
                  [](C x) { return C{4} * sigmoid_of(x + x) * sigmoid_of(-(x + x)); });
  }
  PUMICE_ENSURES(false, "activation ", static_cast<int>(activation));
}

}   // namespace

void activate(ConstTensorView features, Activation activation, double slope, TensorView output) {
  dispatch_floating(features.dtype(), "activate", [&]<class T>(T) {
    dispatch_activation<compute_t<T>>(activation, slope, [&](const auto& value, const auto&) {
      for_elements(
          output.data<T>(), output.elements(),
          [&](auto* to, const auto* x, std::int64_t n) {
            PUMICE_INDEPENDENT
            for (std::int64_t i = 0; i < n; ++i)
              to[i] = value(x[i]);
          },
          features.data<T>());
    });
  });
}

void activation_gradient(ConstTensorView features, ConstTensorView grad_output,
                         Activation activation, double slope, TensorView grad_features) {
  dispatch_floating(features.dtype(), "activation_gradient", [&]<class T>(T) {
    dispatch_activation<compute_t<T>>(activation, slope, [&](const auto&, const auto& derivative) {
      for_elements(
          grad_features.data<T>(), grad_features.elements(),
          [&](auto* to, const auto* x, const auto* g, std::int64_t n) {
            PUMICE_INDEPENDENT
            for (std::int64_t i = 0; i < n; ++i)
              to[i] = g[i] * derivative(x[i]);
          },
          features.data<T>(), grad_output.data<T>());
    });
  });
}

}   // namespace pumice::cpu
