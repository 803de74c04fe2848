// Covers networks on a CUDA device: the CPU's answers from the same calls.
#include <gtest/gtest.h>

#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;

class NetworksOnDeviceGpu : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, NetworksOnDeviceGpu,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

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
  for (int i = 0; i < 100; ++i) {
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
