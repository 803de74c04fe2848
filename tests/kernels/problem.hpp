// Random products for the kernels and float64 loops that say what must come out, with a bound on
// rounding for every element.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/formats/relation_tiles.hpp>

#include "formats/synthetic_map.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {

/// Uniform in [-1, 1), rounded to `dtype`.
inline Tensor random_tensor(Shape shape, DType dtype, std::uint64_t seed) {
  Tensor values(shape, DType::f64);
  Random random(seed, 7);
  for (double& value : values.span<double>())
    value = random.uniform(-1, 1);
  return values.to(dtype);
}

inline std::vector<double> doubles(const Tensor& tensor) {
  const Tensor wide = tensor.to(DType::f64);
  const auto values = wide.span<double>();
  return {values.begin(), values.end()};
}

/// What an element should be, and how far rounding may carry it.
struct Expected {
  explicit Expected(std::size_t size) : value(size), magnitude(size), terms(size) {}
  std::vector<double> value;
  std::vector<double> magnitude;   // Σ |term|
  std::vector<double> terms;

  void add(std::size_t at, double term) {
    value[at] += term;
    magnitude[at] += std::abs(term);
    terms[at] += 1;
  }
};

/// Relative error of one rounding to nearest.
inline double unit(DType dtype) {
  switch (dtype) {
    case DType::f64: return 0x1p-53;
    case DType::f16: return 0x1p-11;
    case DType::bf16: return 0x1p-8;
    default: return 0x1p-24;
  }
}

/// n roundings in the compute type are at most n · u · Σ|term| (and a little more, hence the 1.01);
/// storing rounds once more, f16 with its smallest subnormal 2^-24. bf16 multiplied by the
/// processor flushes terms below 2^-126. `roundings` come on top of one for each term.
inline void expect_close(const Tensor& actual, const Expected& expected, double roundings = 4) {
  const DType compute = actual.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const std::vector<double> values = doubles(actual);
  ASSERT_EQ(values.size(), expected.value.size());
  int wrong = 0;
  for (std::size_t i = 0; i < values.size() && wrong < 5; ++i) {
    const double summing =
        1.01 * (expected.terms[i] + roundings) * unit(compute) * expected.magnitude[i];
    const double storing =
        actual.dtype() == compute
            ? 0
            : 1.01 * unit(actual.dtype()) * std::abs(expected.value[i]) + 0x1p-25;
    if (!(std::abs(values[i] - expected.value[i]) <= summing + storing + 0x1p-120)) {
      ++wrong;
      ADD_FAILURE() << "element " << i << " of " << to_string(actual.shape()) << ": " << values[i]
                    << " instead of " << expected.value[i] << ", bound " << summing + storing;
    }
  }
}

/// Threads for one test; all of them again afterwards.
class WithThreads {
 public:
  explicit WithThreads(int count) { set_threads(count); }
  ~WithThreads() { set_threads(0); }
  WithThreads(const WithThreads&) = delete;
  WithThreads& operator=(const WithThreads&) = delete;
};

struct Channels {
  std::int64_t in, out, groups;
};

/// out[o] += in[i] · W[k] over all pairs. transpose: W is [K, out / groups, in].
inline Expected convolve(const KernelMapView& map, const Tensor& input, const Tensor& weight,
                         const Channels& channels, bool transpose = false) {
  const std::vector<double> x = doubles(input), w = doubles(weight);
  const std::int64_t in_group = channels.in / channels.groups;
  const std::int64_t out_group = channels.out / channels.groups;
  Expected y(static_cast<std::size_t>(map.out_rows * channels.out));
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (std::int64_t p = map.offset_begin[static_cast<std::size_t>(k)];
         p < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++p) {
      const std::int64_t i = map.in[static_cast<std::size_t>(p)];
      const std::int64_t o = map.out[static_cast<std::size_t>(p)];
      for (std::int64_t n = 0; n < channels.out; ++n) {
        const std::int64_t g = n / out_group;
        for (std::int64_t c = 0; c < in_group; ++c) {
          const std::int64_t at =
              transpose ? (k * out_group + n % out_group) * channels.in + g * in_group + c
                        : (k * in_group + c) * channels.out + n;
          y.add(static_cast<std::size_t>(o * channels.out + n),
                x[static_cast<std::size_t>(i * channels.in + g * in_group + c)] *
                    w[static_cast<std::size_t>(at)]);
        }
      }
    }
  }
  return y;
}

/// dW[k][c][n] = Σ x[i][c] · g[o][n].
inline Expected weight_product(const KernelMapView& map, const Tensor& input, const Tensor& grad,
                               const Channels& channels) {
  const std::vector<double> x = doubles(input), g = doubles(grad);
  const std::int64_t in_group = channels.in / channels.groups;
  const std::int64_t out_group = channels.out / channels.groups;
  Expected result(static_cast<std::size_t>(map.offsets * in_group * channels.out));
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (std::int64_t p = map.offset_begin[static_cast<std::size_t>(k)];
         p < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++p) {
      const std::int64_t i = map.in[static_cast<std::size_t>(p)];
      const std::int64_t o = map.out[static_cast<std::size_t>(p)];
      for (std::int64_t c = 0; c < in_group; ++c) {
        for (std::int64_t n = 0; n < channels.out; ++n) {
          const std::int64_t from = i * channels.in + n / out_group * in_group + c;
          result.add(static_cast<std::size_t>((k * in_group + c) * channels.out + n),
                     x[static_cast<std::size_t>(from)] *
                         g[static_cast<std::size_t>(o * channels.out + n)]);
        }
      }
    }
  }
  return result;
}

}   // namespace pumice::test
