// Covers networks on a CUDA device: the CPU's answers from the same calls.
#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"
#include "support/gpu.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;

constexpr MinkUNetWidths kSmall{8, 8, 12, 16, 24, 24, 16, 12, 9};

std::shared_ptr<Module> settled_network(std::string_view name, const SparseTensor& x) {
  auto network = make_network(name, {.widths = kSmall, .seed = 4});
  stir(*network);
  settle(*network, x, momentum_of(name));
  return network;
}

SparseTensor scene_for(std::string_view name, std::int64_t sites) {
  const auto shape = find_network(name).spatial_shape;
  const SceneOptions scene{
      .sites = sites, .low = shape ? 0 : -60, .high = 60, .spatial_shape = shape};
  return make_input(make_scene(scene), 4);
}

struct Answer {
  Tensor coordinates;
  Tensor features;
};

Answer answer_of(Module& network, const SparseTensor& x) {
  Context context;
  const SparseTensor y = network.forward(x, context);
  return {copy_to_host(y.coordinates->coordinates(), y.features.stream()),
          copy_to_host(y.features, y.features.stream())};
}

SparseTensor on(const SparseTensor& x, DType type, StreamView stream) {
  return {CoordinateSet::copy_to(x.coordinates, stream), copy_to(stream, x.features.to(type))};
}

/// Rows of both in one order: those of made sets come in the order of their keys on a device, and
/// as they were reached on the CPU.
Tensor in_key_order(const Answer& answer) {
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

class NetworksOnDeviceGpu : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, NetworksOnDeviceGpu,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

/// A copy of `network`, weights and statistics, in another type.
std::shared_ptr<Module> copy_of(const Module& network, std::string_view name, DType type) {
  auto copy = make_network(name, {.widths = kSmall, .seed = 4});
  for (const NamedParameter& named : network.parameters())
    parameter_of(*copy, named.name)->set(named.parameter->value().clone());
  copy->to(type);
  copy->eval();
  fold(*copy);
  return copy;
}

TEST_P(NetworksOnDeviceGpu, give_the_answers_of_the_cpu_in_every_type) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t sites : {1, 33, 3000}) {
    const SparseTensor x = scene_for(GetParam(), sites);
    // One row has no variance to settle on.
    const auto network = settled_network(GetParam(), sites == 1 ? scene_for(GetParam(), 400) : x);
    const Tensor expected = in_key_order(answer_of(*copy_of(*network, GetParam(), DType::f32), x));
    for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
      SCOPED_TRACE(std::string(name_of(type)) + ", " + std::to_string(sites) + " sites");
      // Both round once a layer, in places of their own, and norms over few rows enlarge what they
      // lose: the CPU's own loss in that type is the measure. f32 loses only by the order of sums.
      const auto on_host = copy_of(*network, GetParam(), type);
      SparseTensor typed = x;
      typed.features = x.features.to(type);
      const double own_loss =
          relative_difference(in_key_order(answer_of(*on_host, typed)), expected);
      const auto on_device = copy_of(*network, GetParam(), type);
      on_device->to(stream);
      const Tensor actual = in_key_order(answer_of(*on_device, on(x, type, stream)));
      ASSERT_EQ(actual.shape(), expected.shape());
      EXPECT_LT(relative_difference(actual, expected), 2 * own_loss + 1e-5);
    }
  }
}

TEST_P(NetworksOnDeviceGpu, give_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor x = scene_for(GetParam(), 2000);
  auto network = settled_network(GetParam(), x);
  network->to(DType::f16);
  fold(*network);
  network->to(stream);
  const Answer first = answer_of(*network, on(x, DType::f16, stream));
  for (int i = 0; i < 20; ++i) {
    const Answer again = answer_of(*network, on(x, DType::f16, stream));
    ASSERT_TRUE(same_bits(first.coordinates, again.coordinates)) << i;
    ASSERT_TRUE(same_bits(first.features, again.features)) << i;
  }
}

TEST_P(NetworksOnDeviceGpu, take_a_scene_without_sites) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  auto network = make_network(GetParam(), {.widths = kSmall, .seed = 4});
  network->eval();
  fold(*network);
  network->to(stream);
  const auto set = empty_scene(find_network(GetParam()).spatial_shape);
  const SparseTensor x(set, Tensor(Shape{0, 4}, DType::f32));
  const Answer answer = answer_of(*network, on(x, DType::f32, stream));
  EXPECT_EQ(answer.features.rows(), 0);
}

TEST(ModulesOnDeviceGpu, go_to_a_device_and_back_with_the_same_weights) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  auto network = make_network("second", {.seed = 9});
  const auto before = parameter_of(*network, "conv_input.0.weight")->value().clone();
  network->to(stream);
  EXPECT_EQ(parameter_of(*network, "conv_input.0.weight")->value().device(), kGpu);
  network->to(StreamView{});
  EXPECT_TRUE(same_bits(parameter_of(*network, "conv_input.0.weight")->value(), before));
}

TEST(ModulesOnDeviceGpu, refuse_what_lies_elsewhere_by_name) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor x = scene_for("minkunet42", 100);
  auto network = make_network("minkunet42", {.widths = kSmall, .seed = 4});
  network->eval();
  Context context;
  EXPECT_NE(test::message_of([&] {
              network->forward(on(x, DType::f32, stream), context);
            }).find("weight is on cpu but features on cuda:0"),
            std::string::npos);
  network->to(DType::f64);
  EXPECT_NE(test::message_of([&] { network->to(stream); }).find("f64 are for the CPU"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::nn
