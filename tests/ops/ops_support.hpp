// What tests of operators share: chance inputs, comparison with derived tolerances, central
// differences, and the promise that threads do not change a bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>

#include "reference/reference_ops.hpp"

namespace pumice::test {

using reference::Matrix;

inline constexpr DType kFloating[] = {DType::f64, DType::f32, DType::f16, DType::bf16};
inline constexpr std::int64_t kSizes[] = {0, 1, 31, 33, 65537};

inline DType compute_of(DType type) {
  return type == DType::f64 ? type : DType::f32;
}

/// Half a unit in the last place of 1.
inline double rounding_of(DType type) {
  switch (type) {
    case DType::f64: return 0x1p-53;
    case DType::f32: return 0x1p-24;
    case DType::f16: return 0x1p-11;
    default: return 0x1p-8;
  }
}

/// Uniform in [low, high), rounded to `type`.
inline Tensor chance_tensor(Shape shape, DType type, std::uint64_t seed, double low = -1,
                            double high = 1) {
  Tensor result(shape, DType::f64);
  Random random(seed);
  for (double& value : result.span<double>())
    value = random.uniform(low, high);
  return result.to(type);
}

/// The values as float64, a vector as one row.
inline Matrix matrix_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  Matrix result(shape.rank() == 1 ? 1 : shape[0], shape.rank() == 1 ? shape[0] : shape[1]);
  if (tensor.dtype() == DType::i32) {
    const auto values = tensor.span<std::int32_t>();
    result.values.assign(values.begin(), values.end());
    return result;
  }
  const Tensor wide = tensor.to(DType::f64);
  const auto values = wide.span<double>();
  result.values.assign(values.begin(), values.end());
  return result;
}

inline Tensor tensor_of(const Matrix& matrix, DType type) {
  Tensor result({matrix.rows, matrix.columns}, DType::f64);
  std::copy(matrix.values.begin(), matrix.values.end(), result.data<double>());
  return result.to(type);
}

/// Compares with float64: `work` is how often values of at most `scale` are rounded to the compute
/// type on the way; storing rounds once more. Half an f16 subnormal (2^-25) is always allowed
/// there.
inline void expect_near(const Tensor& actual, const Matrix& expected, double work, double scale,
                        const char* what) {
  const Matrix got = matrix_of(actual);
  ASSERT_EQ(got.rows, expected.rows) << what;
  ASSERT_EQ(got.columns, expected.columns) << what;
  const double stored = rounding_of(actual.dtype());
  const double computed = rounding_of(compute_of(actual.dtype())) * work * scale;
  const double least = actual.dtype() == DType::f16 ? 0x1p-25 : 0;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    const double bound = (stored * std::abs(expected.values[i]) + computed) * (1 + stored) + least;
    if (std::abs(got.values[i] - expected.values[i]) <= bound) continue;
    FAIL() << what << ", " << name_of(actual.dtype()) << ": element " << i << " (row "
           << static_cast<std::int64_t>(i) / std::max<std::int64_t>(1, got.columns) << ") is "
           << got.values[i] << ", expected " << expected.values[i] << " within " << bound;
  }
}

inline void expect_equal(const Tensor& actual, const Matrix& expected, const char* what) {
  const Matrix got = matrix_of(actual);
  ASSERT_EQ(got.rows, expected.rows) << what;
  ASSERT_EQ(got.columns, expected.columns) << what;
  for (std::size_t i = 0; i < got.values.size(); ++i) {
    ASSERT_EQ(got.values[i], expected.values[i]) << what << " at " << i;
  }
}

/// The same bits for 1, 2 and 3 threads.
inline void expect_same_on_threads(const std::function<std::vector<Tensor>()>& run) {
  set_threads(1);
  const std::vector<Tensor> alone = run();
  for (const int count : {2, 3}) {
    set_threads(count);
    const std::vector<Tensor> together = run();
    ASSERT_EQ(alone.size(), together.size());
    for (std::size_t i = 0; i < alone.size(); ++i) {
      ASSERT_EQ(alone[i].shape(), together[i].shape());
      if (alone[i].bytes() == 0) continue;
      EXPECT_EQ(std::memcmp(alone[i].raw(), together[i].raw(), alone[i].bytes()), 0)
          << "result " << i << " differs with " << count << " threads";
    }
  }
  set_threads(0);
}

/// Compares `gradient` with central differences of Σ run(input) · weight, all in f64.
inline void expect_gradient(const std::function<Tensor(const Tensor&)>& run, const Tensor& input,
                            const Tensor& weight, const Tensor& gradient, const char* what) {
  ASSERT_EQ(gradient.shape(), input.shape()) << what;
  ASSERT_EQ(gradient.dtype(), DType::f64) << what;
  constexpr double kStep = 1e-5;
  const auto loss = [&](std::int64_t i, double step) {
    Tensor moved = input.clone();
    moved.data<double>()[i] += step;
    const Tensor output = run(moved);
    double sum = 0;
    for (std::int64_t k = 0; k < output.elements(); ++k) {
      sum += output.data<double>()[k] * weight.data<double>()[k];
    }
    return sum;
  };
  for (std::int64_t i = 0; i < input.elements(); ++i) {
    const double difference = (loss(i, kStep) - loss(i, -kStep)) / (2 * kStep);
    // Rounding of the loss over the step, 1e-15 · 100 / 1e-5, and the third derivative · 1e-10.
    ASSERT_NEAR(gradient.data<double>()[i], difference, 1e-6 * (1 + std::abs(difference)))
        << what << ", element " << i;
  }
}

/// `body` must throw a UserError whose sentence holds all of `words`.
template <class Body>
void expect_sentence(const Body& body, std::initializer_list<std::string> words) {
  try {
    body();
  } catch (const UserError& error) {
    for (const std::string& word : words) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos)
          << '"' << error.what() << "\" does not say \"" << word << '"';
    }
    return;
  }
  ADD_FAILURE() << "nothing was thrown";
}

/// `rows` distinct sites of both signs in 5 batch items, of which 2 and 4 stay empty; rows in
/// chance order, or batch by batch.
inline CoordinateSetPtr chance_set(std::int64_t rows, std::uint64_t seed, int dimension = 3,
                                   bool shuffled = true) {
  Random random(seed);
  const int items[] = {0, 1, 3};
  // Three times as many cells as sites.
  const auto reach = static_cast<std::int64_t>(
      1 + std::ceil(std::pow(static_cast<double>(rows), 1.0 / dimension) / 2));
  std::set<reference::Site> known;
  std::vector<reference::Site> sites;
  while (static_cast<std::int64_t>(sites.size()) < rows) {
    reference::Site site{items[random.integer(0, 2)]};
    for (int axis = 0; axis < dimension; ++axis) {
      site.push_back(static_cast<int>(random.integer(-reach, reach)));
    }
    if (known.insert(site).second) sites.push_back(site);
  }
  if (!shuffled) sites.assign(known.begin(), known.end());
  Tensor coordinates({rows, dimension + 1}, DType::i32);
  for (std::int64_t row = 0; row < rows; ++row) {
    for (int axis = 0; axis <= dimension; ++axis) {
      coordinates.data<std::int32_t>()[row * (dimension + 1) + axis] =
          sites[static_cast<std::size_t>(row)][static_cast<std::size_t>(axis)];
    }
  }
  CoordinateOptions options;
  options.batch_size = 5;
  return CoordinateSet::create(coordinates, options);
}

inline reference::Sites sites_of(const CoordinateSet& set) {
  reference::Sites sites;
  const auto* at = set.coordinates().data<std::int32_t>();
  for (std::int64_t row = 0; row < set.size(); ++row, at += set.dimension() + 1) {
    sites.emplace_back(at, at + set.dimension() + 1);
  }
  return sites;
}

inline reference::Rows items_of(const CoordinateSet& set) {
  reference::Rows items;
  for (const reference::Site& site : sites_of(set))
    items.push_back(site[0]);
  return items;
}

}   // namespace pumice::test
