// Recorded gradients beside central differences, in float64.
#pragma once

#include <functional>
#include <sstream>
#include <string>

#include "nn/scenes.hpp"

namespace pumice::nn::test {

using Forward = std::function<SparseTensor(SparseTensor, Context&)>;

struct GradientReport {
  double worst = 0;    // |difference| over the largest gradient of the same tensor
  std::string where;   // the element that had it
  int compared = 0;
  int silent = 0;   // tensors whose gradient is 0 everywhere: nothing was learnt about them
};

/// The loss is the sum of the outputs times fixed random numbers. In f64 a step of 1e-6 leaves a
/// truncation error near 1e-12 times the third derivative and a rounding error near 1e-10 times the
/// loss; a ReLU that changes sides within the step, whose chance is some 1e-6 for each input of
/// each ReLU, stands out at once and is looked at again with a step of a sixteenth.
class GradientCheck {
 public:
  GradientCheck(Forward forward, Module& module, SparseTensor input, int samples = 2,
                double step = 1e-6)
      : forward_(std::move(forward)),
        module_(module),
        input_(std::move(input)),
        samples_(samples),
        step_(step) {}

  GradientReport run() {
    module_.clear_gradients();
    SparseTensor x = input_;
    const NodePtr leaf = require_gradient(x);
    Context context{.record = true};
    const SparseTensor y = forward_(std::move(x), context);
    weights_ = random_tensor(y.features.shape(), DType::f64, 77);
    backward(y.node, weights_);

    // In place: the input's features are the check's own.
    input_.features = input_.features.clone();
    compare("input", leaf->gradient(),
            [&](std::int64_t i) -> double& { return input_.features.data<double>()[i]; });
    for (const NamedParameter& named : module_.parameters()) {
      if (!named.parameter->spec().trainable) continue;
      compare(named.name, named.parameter->gradient(),
              [&](std::int64_t i) -> double& { return named.parameter->edit().data<double>()[i]; });
    }
    return report_;
  }

 private:
  double loss() {
    Context context;
    const SparseTensor y = forward_(input_, context);
    double sum = 0;
    for (std::int64_t i = 0; i < y.features.elements(); ++i) {
      sum += y.features.data<double>()[i] * weights_.data<double>()[i];
    }
    return sum;
  }

  /// Central difference of the loss by one number. `element` is asked anew each time: asking a
  /// parameter says that it changes.
  template <class Element> double slope(Element&& element, std::int64_t i, double step) {
    const double kept = element(i);
    element(i) = kept + step;
    const double above = loss();
    element(i) = kept - step;
    const double below = loss();
    element(i) = kept;
    return (above - below) / (2 * step);
  }

  template <class Element>
  void compare(const std::string& name, const Tensor& gradient, Element&& element) {
    if (!gradient.defined()) {
      ADD_FAILURE() << name << " received no gradient";
      return;
    }
    const double scale = largest(gradient);
    if (scale == 0) ++report_.silent;
    for (int sample = 0; sample < samples_ && gradient.elements() > 0; ++sample) {
      const std::int64_t i = random_.integer(0, gradient.elements() - 1);
      const double analytic = gradient.data<double>()[i];
      double numeric = slope(element, i, step_);
      // 1e-3 keeps a gradient that is 0 but for rounding (a bias before a norm) from dividing 0 by
      // 0.
      const auto error_of = [&] { return std::abs(numeric - analytic) / std::max(scale, 1e-3); };
      double error = error_of();
      if (error > 1e-7) {   // a ReLU that changes sides within the step does not in a shorter one
        numeric = slope(element, i, step_ / 16);
        error = std::min(error, error_of());
      }
      ++report_.compared;
      if (error > report_.worst || std::isnan(error)) {
        std::ostringstream text;
        text << name << '[' << i << "]: recorded " << analytic << ", difference " << numeric;
        report_.where = text.str();
        report_.worst = std::isnan(error) ? INFINITY : error;
      }
    }
  }

  Forward forward_;
  Module& module_;
  SparseTensor input_;
  int samples_;
  double step_;
  Random random_{42};
  Tensor weights_;
  GradientReport report_;
};

}   // namespace pumice::nn::test
