// Tensors where the kernels of a test runner and the test itself both read them.
#pragma once

#include <cmath>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/tensor.hpp>

#include "support/kernel_engines.hpp"

namespace pumice::test {

class DeviceTensor {
 public:
  /// A copy.
  DeviceTensor(const TestRunner& runner, const Tensor& from)
      : DeviceTensor(runner, from.shape(), from.dtype()) {
    if (from.bytes() > 0) std::memcpy(bytes_.data(), from.raw(), from.bytes());
  }
  /// Full of garbage, NaN in every floating type.
  DeviceTensor(const TestRunner& runner, const Shape& shape, DType type)
      : bytes_(runner.make<std::byte>(shape.elements() * static_cast<std::int64_t>(size_of(type)))),
        view_(bytes_.data(), type, shape, runner.stream()) {
    if (bytes_.size() > 0) std::memset(bytes_.data(), 0xff, bytes_.bytes());
  }

  const TensorView& view() const { return view_; }
  Tensor host() const {
    Tensor result(view_.shape(), view_.dtype());
    if (result.bytes() > 0) std::memcpy(result.raw(), bytes_.data(), result.bytes());
    return result;
  }

 private:
  Buffer<std::byte> bytes_;
  TensorView view_;
};

/// Holds what kernels made beside what the CPU made: the rounding of the storage type, and `work`
/// roundings of fp32 of values of at most `scale`.
inline void expect_like(const DeviceTensor& actual, const Tensor& expected, double work,
                        double scale, const char* what) {
  const Tensor host = actual.host();
  ASSERT_EQ(host.shape(), expected.shape()) << what;
  ASSERT_EQ(host.dtype(), expected.dtype()) << what;
  if (host.dtype() == DType::i32) {
    for (std::int64_t i = 0; i < host.elements(); ++i)
      ASSERT_EQ(host.data<std::int32_t>()[i], expected.data<std::int32_t>()[i])
          << what << " at " << i;
    return;
  }
  const double stored = host.dtype() == DType::f32   ? 0
                        : host.dtype() == DType::f16 ? 0x1p-10
                                                     : 0x1p-7;
  const Tensor a = host.to(DType::f64);
  const Tensor b = expected.to(DType::f64);
  for (std::int64_t i = 0; i < a.elements(); ++i) {
    const double x = a.data<double>()[i];
    const double y = b.data<double>()[i];
    const double bound = stored * std::abs(y) + 0x1p-24 * work * scale + 0x1p-24;
    if (std::abs(x - y) <= bound || (std::isnan(x) && std::isnan(y))) continue;
    FAIL() << what << ", " << name_of(host.dtype()) << ' ' << to_string(host.shape())
           << ": element " << i << " is " << x << ", on the CPU " << y << ", bound " << bound;
  }
}

}   // namespace pumice::test
