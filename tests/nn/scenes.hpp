// Small inputs and comparisons that the tests of layers and networks share.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/nn/module.hpp>

#include "support/same_bits.hpp"

namespace pumice::nn::test {

using pumice::test::same_bits;

struct SceneOptions {
  std::int64_t sites = 60;
  int batches = 2;
  std::int32_t low = -40;   // coordinates lie in [low, high) on every axis
  std::int32_t high = 40;
  std::optional<Axes> spatial_shape{};
  std::uint64_t seed = 1;
};

/// Clumps of neighbours far apart: fine levels have pairs, and coarse levels still have rows. Rows
/// come in the order they were drawn, not in key order.
inline CoordinateSetPtr make_scene(const SceneOptions& options = {}) {
  Random random(options.seed, 11);
  std::set<std::array<std::int32_t, 4>> seen;
  std::vector<std::int32_t> flat;
  const auto high_of = [&](std::size_t axis) {
    return options.spatial_shape ? std::min(options.high, (*options.spatial_shape)[axis])
                                 : options.high;
  };
  std::array<std::int32_t, 4> site{};
  for (int drawn = 0; static_cast<std::int64_t>(seen.size()) < options.sites; ++drawn) {
    if (drawn % 3 == 0) {
      site[0] = static_cast<std::int32_t>(random.integer(0, options.batches - 1));
      for (std::size_t axis = 0; axis < 3; ++axis) {
        site[axis + 1] = static_cast<std::int32_t>(random.integer(options.low, high_of(axis) - 1));
      }
    } else {
      const auto axis = static_cast<std::size_t>(random.integer(0, 2));
      site[axis + 1] = std::min(site[axis + 1] + 1, high_of(axis) - 1);
    }
    if (seen.insert(site).second) flat.insert(flat.end(), site.begin(), site.end());
  }
  CoordinateOptions coordinates;
  coordinates.spatial_shape = options.spatial_shape;
  coordinates.batch_size = options.batches;
  const auto rows = static_cast<std::int64_t>(seen.size());
  return CoordinateSet::create(Tensor::from(std::span<const std::int32_t>(flat), Shape{rows, 4}),
                               coordinates);
}

inline CoordinateSetPtr empty_scene(std::optional<Axes> spatial_shape = {}) {
  CoordinateOptions options;
  options.spatial_shape = spatial_shape;
  options.batch_size = 2;
  return CoordinateSet::create(Tensor(Shape{0, 4}, DType::i32), options);
}

inline Tensor random_tensor(Shape shape, DType type, std::uint64_t seed) {
  Random random(seed, 12);
  Tensor result(shape, DType::f64);
  for (double& value : result.span<double>())
    value = random.uniform(-1, 1);
  return result.to(type);
}

inline SparseTensor make_input(const CoordinateSetPtr& set, std::int64_t channels,
                               DType type = DType::f32, std::uint64_t seed = 2) {
  return {set, random_tensor({set->size(), channels}, type, seed)};
}

inline double largest(const Tensor& a) {
  const Tensor wide = a.to(DType::f64);
  double result = 0;
  for (const double value : wide.span<double>())
    result = std::max(result, std::abs(value));
  return result;
}

/// Largest difference over the largest magnitude of `expected`.
inline double relative_difference(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return INFINITY;
  const Tensor left = actual.to(DType::f64);
  const Tensor right = expected.to(DType::f64);
  double worst = 0;
  for (std::size_t i = 0; i < left.span<double>().size(); ++i) {
    const double difference = std::abs(left.span<double>()[i] - right.span<double>()[i]);
    worst = std::isnan(difference) ? INFINITY : std::max(worst, difference);
  }
  return worst == 0 ? 0 : worst / std::max(largest(expected), 1e-300);
}

inline ParameterPtr parameter_of(const Module& module, const std::string& name) {
  for (const NamedParameter& named : module.parameters()) {
    if (named.name == name) return named.parameter;
  }
  ADD_FAILURE() << "no parameter " << name;
  return nullptr;
}

/// Norm parameters and statistics away from 1 and 0, so that a test sees each of them.
inline void stir(Module& module, std::uint64_t seed = 3) {
  Random random(seed, 13);
  for (const NamedParameter& named : module.parameters()) {
    const ParameterSpec& spec = named.parameter->spec();
    if (spec.fan_in > 0) continue;
    Tensor& values = named.parameter->edit();
    dispatch_floating(values.dtype(), "stir", [&](auto zero) {
      using T = decltype(zero);
      for (T& value : values.template span<T>()) {
        const double drawn = spec.initial + random.uniform(-0.4, 0.4);
        value = narrow<T>(static_cast<compute_t<T>>(drawn));
      }
    });
  }
}

/// Of a network's norms: PyTorch's, and the one OpenPCDet trains its encoders with.
inline double momentum_of(std::string_view network) {
  return network == "minkunet42" ? 0.1 : 0.01;
}

/// Running statistics equal to those of `x`, and evaluation mode. Without it the values of an
/// untrained network shrink from layer to layer until nothing is left to compare. One training pass
/// moves statistics of 0 by `momentum` of the way.
inline void settle(Module& module, const SparseTensor& x, double momentum) {
  const auto scale_statistics = [&](double factor) {
    for (const NamedParameter& named : module.parameters()) {
      if (named.parameter->spec().trainable) continue;
      Tensor& values = named.parameter->edit();
      dispatch_floating(values.dtype(), "settle", [&](auto zero) {
        for (auto& value : values.template span<decltype(zero)>()) {
          value =
              narrow<decltype(zero)>(widen(value) * static_cast<compute_t<decltype(zero)>>(factor));
        }
      });
    }
  };
  scale_statistics(0);
  module.train();
  Context context;
  module.forward(x, context);
  scale_statistics(1 / momentum);
  module.eval();
}

template <class Body> std::string message_of(Body&& body) {
  try {
    body();
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}   // namespace pumice::nn::test
