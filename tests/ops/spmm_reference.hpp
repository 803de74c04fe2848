// Products of sparse matrices as their definition says: loops over a list of entries in float64.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/ops/spmm.hpp>

#include "graphs/random_pattern.hpp"

namespace pumice::test {

inline constexpr EntryReduction kReductions[] = {EntryReduction::sum, EntryReduction::mean,
                                                 EntryReduction::max, EntryReduction::min};

inline bool picks(EntryReduction reduction) {
  return reduction == EntryReduction::max || reduction == EntryReduction::min;
}

/// Everything of one product in float64, as its definition says.
struct Reference {
  Tensor output, source, features_gradient, values_gradient;

  Reference(const PatternCase& of, const Tensor& values, const Tensor& features,
            const Tensor& grad_output, std::int64_t heads, EntryReduction reduction)
      : output(Tensor::zeros({of.rows, features.view().extent(1)}, DType::f64)),
        source(Tensor::full({of.rows, features.view().extent(1)}, DType::i64, -1)),
        features_gradient(Tensor::zeros(features.shape(), DType::f64)),
        values_gradient(Tensor::zeros({of.entries(), heads}, DType::f64)) {
    const std::int64_t channels = features.view().extent(1);
    const double* x = features.span<double>().data();
    const double* g = grad_output.span<double>().data();
    const auto weight = [&](std::int64_t entry, std::int64_t c) {
      return values.defined() ? values.span<double>()[static_cast<std::size_t>(
                                    entry * heads + c * heads / channels)]
                              : 1.0;
    };
    std::vector<double> count(static_cast<std::size_t>(of.rows));
    for (const std::int64_t row : of.row)
      ++count[static_cast<std::size_t>(row)];
    double* y = output.span<double>().data();
    std::int64_t* from = source.span<std::int64_t>().data();
    for (std::int64_t e = 0; e < of.entries(); ++e) {
      const std::int64_t row = of.row[static_cast<std::size_t>(e)];
      const std::int64_t column = of.column[static_cast<std::size_t>(e)];
      for (std::int64_t c = 0; c < channels; ++c) {
        const double term = weight(e, c) * x[column * channels + c];
        double& sum = y[row * channels + c];
        std::int64_t& best = from[row * channels + c];
        switch (reduction) {
          case EntryReduction::sum: sum += term; break;
          case EntryReduction::mean: sum += term / count[static_cast<std::size_t>(row)]; break;
          case EntryReduction::max:
            if (best < 0 || term > sum) best = e, sum = term;
            break;
          case EntryReduction::min:
            if (best < 0 || term < sum) best = e, sum = term;
            break;
        }
      }
    }
    double* gx = features_gradient.span<double>().data();
    double* gv = values_gradient.span<double>().data();
    for (std::int64_t e = 0; e < of.entries(); ++e) {
      const std::int64_t row = of.row[static_cast<std::size_t>(e)];
      const std::int64_t column = of.column[static_cast<std::size_t>(e)];
      for (std::int64_t c = 0; c < channels; ++c) {
        if (picks(reduction) && from[row * channels + c] != e) continue;
        const double share =
            reduction == EntryReduction::mean ? count[static_cast<std::size_t>(row)] : 1.0;
        const double gradient = g[row * channels + c] / share;
        gx[column * channels + c] += weight(e, c) * gradient;
        gv[e * heads + c * heads / channels] += x[column * channels + c] * gradient;
      }
    }
  }
};

inline void expect_near(const Tensor& found, const Tensor& expected, double tolerance,
                        const char* what) {
  ASSERT_EQ(found.shape(), expected.shape()) << what;
  const Tensor wide = found.to(DType::f64);
  for (std::int64_t i = 0; i < expected.view().elements(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    const double right = expected.span<double>()[at];
    ASSERT_NEAR(wide.span<double>()[at], right, tolerance * (1 + std::abs(right)))
        << what << ", element " << i;
  }
}

/// f64 rows and what is added to each; undefined: nothing.
inline Tensor with_added(const Tensor& rows, const Tensor& shift, const Tensor& residual) {
  Tensor result = rows.to(DType::f64).clone();
  const std::int64_t channels = rows.extent(1);
  for (std::int64_t i = 0; i < rows.view().elements(); ++i) {
    if (residual.defined()) result.data<double>()[i] += residual.to(DType::f64).data<double>()[i];
    if (shift.defined())
      result.data<double>()[i] += shift.to(DType::f64).data<double>()[i % channels];
  }
  return result;
}

struct Kind {
  DType type;
  double tolerance;   // sums in the compute type, rounded once or, by mean, twice
};
inline constexpr Kind kKinds[] = {
    {DType::f64, 1e-12}, {DType::f32, 2e-5}, {DType::f16, 2e-3}, {DType::bf16, 1.6e-2}};

/// [entries, heads] of f64 rows.
inline Tensor dots(const PatternCase& of, const Tensor& left, const Tensor& right,
                   std::int64_t heads) {
  const std::int64_t channels = left.view().extent(1);
  Tensor result = Tensor::zeros({of.entries(), heads}, DType::f64);
  for (std::int64_t e = 0; e < of.entries(); ++e) {
    const std::int64_t row = of.row[static_cast<std::size_t>(e)];
    const std::int64_t column = of.column[static_cast<std::size_t>(e)];
    for (std::int64_t c = 0; c < channels; ++c)
      result.span<double>()[static_cast<std::size_t>(e * heads + c * heads / channels)] +=
          left.span<double>()[static_cast<std::size_t>(row * channels + c)] *
          right.span<double>()[static_cast<std::size_t>(column * channels + c)];
  }
  return result;
}

}   // namespace pumice::test
