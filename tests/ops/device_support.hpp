// What tests of operators on a device share: going there and back, and the CPU as the reference.
#pragma once

#include <cmath>
#include <utility>

#include <gtest/gtest.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "kernels/problem.hpp"
#include "ops/ops_support.hpp"
#include "support/gpu.hpp"

namespace pumice::test {

/// Types that kernels compute in.
inline constexpr DType kDeviceTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Operands of tf32 have 10 bits of mantissa, whether they are rounded or cut off: two errors of
/// 2^-10 a product, in roundings of fp32.
inline constexpr double kTf32Roundings = 2.2 * (1 << 14);

/// Rows that a thread adds up in fp32 before it meets others.
inline constexpr double kWork = 256;

/// How large a sum of so many terms of either sign becomes: what its roundings are of.
inline double sum_of(std::int64_t terms) {
  return std::sqrt(static_cast<double>(terms)) + 1;
}

/// On the host; waits.
inline Tensor back(const Tensor& tensor) {
  return copy_to_host(tensor, tensor.stream());
}

/// Holds `actual`, from a device, beside what the CPU computed of the same numbers: both sum in at
/// least fp32, in orders of their own, so they differ by the storage type's rounding, and by
/// `work` roundings of fp32 of values of at most `scale`.
inline void expect_agrees(const Tensor& actual, const Tensor& expected, double work, double scale,
                          const char* what) {
  ASSERT_EQ(actual.shape(), expected.shape()) << what;
  ASSERT_EQ(actual.dtype(), expected.dtype()) << what;
  const Tensor host = back(actual);
  if (actual.dtype() == DType::i32) {
    ASSERT_EQ(matrix_of(host).values, matrix_of(expected).values) << what;
    return;
  }
  const std::vector<double> a = doubles(host);
  const std::vector<double> b = doubles(expected);
  const double stored = 2 * rounding_of(actual.dtype());
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double bound = stored * std::abs(b[i]) + 0x1p-24 * work * scale + 0x1p-24;
    if (std::abs(a[i] - b[i]) <= bound || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    FAIL() << what << ", " << name_of(actual.dtype()) << ' ' << to_string(actual.shape())
           << ": element " << i << " is " << a[i] << ", on the CPU " << b[i] << ", bound " << bound;
  }
}

}   // namespace pumice::test
