// Networks and their answers, for tests that compare a device with the CPU.
#pragma once

#include <memory>
#include <string_view>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"
#include "support/gpu.hpp"

namespace pumice::nn::test {

inline constexpr MinkUNetWidths kSmall{8, 8, 12, 16, 24, 24, 16, 12, 9};

/// With statistics that suit `x`, in evaluation mode.
inline std::shared_ptr<Module> settled_network(std::string_view name, const SparseTensor& x) {
  auto network = make_network(name, {.widths = kSmall, .seed = 4});
  stir(*network);
  settle(*network, x, momentum_of(name));
  return network;
}

inline SparseTensor scene_for(std::string_view name, std::int64_t sites, std::uint64_t seed = 1) {
  const auto shape = find_network(name).spatial_shape;
  const SceneOptions scene{
      .sites = sites, .low = shape ? 0 : -60, .high = 60, .spatial_shape = shape, .seed = seed};
  return make_input(make_scene(scene), 4);
}

struct Answer {
  Tensor coordinates;
  Tensor features;
};

/// The rows that are in use, on the host. Waits.
inline Answer answer_from(const SparseTensor& y) {
  const StreamView stream = y.features.stream();
  const std::int64_t rows = y.coordinates->rows().wait_for_host(stream);
  const auto used = [&](const Tensor& tensor) {
    return copy_to_host(
        ConstTensorView(tensor.raw(), tensor.dtype(), {rows, tensor.extent(1)}, tensor.stream()),
        stream);
  };
  return {used(y.coordinates->coordinates()), used(y.features)};
}

inline Answer answer_of(Module& network, const SparseTensor& x) {
  Context context;
  return answer_from(network.forward(x, context));
}

inline SparseTensor on(const SparseTensor& x, DType type, StreamView stream) {
  return {CoordinateSet::copy_to(x.coordinates, stream), copy_to(stream, x.features.to(type))};
}

/// Rows of both in one order: those of made sets come in the order of their keys on a device, and
/// as they were reached on the CPU.
inline Tensor in_key_order(const Answer& answer) {
  const auto set = CoordinateSet::create(answer.coordinates);
  const std::int64_t channels = answer.features.extent(1);
  const Tensor values = answer.features.to(DType::f32);
  Tensor result(values.shape(), DType::f32);
  const auto keys = set->sorted_keys();
  for (std::size_t rank = 0; rank < keys.size(); ++rank) {
    const std::int64_t row = set->index().find_row(keys[rank]);
    std::copy_n(values.data<float>() + row * channels, channels,
                result.data<float>() + static_cast<std::int64_t>(rank) * channels);
  }
  return result;
}

/// A copy of `network`, weights and statistics, in another type, folded.
inline std::shared_ptr<Module> copy_of(const Module& network, std::string_view name, DType type) {
  auto copy = make_network(name, {.widths = kSmall, .seed = 4});
  for (const NamedParameter& named : network.parameters())
    parameter_of(*copy, named.name)->set(named.parameter->value().clone());
  copy->to(type);
  copy->eval();
  fold(*copy);
  return copy;
}

}   // namespace pumice::nn::test
