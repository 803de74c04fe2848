// Folding: one call for a convolution and what follows it gives what the layers give one by one.
// Covers fold of module.
#include <gtest/gtest.h>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

Tensor run(Module& network, SparseTensor x, Context context = {}) {
  return network.forward(std::move(x), context).features;
}

SparseTensor input_of(std::string_view name, DType type) {
  const auto shape = find_network(name).spatial_shape;
  return make_input(make_scene({.sites = 500, .low = shape ? 0 : -40, .spatial_shape = shape}), 4,
                    type);
}

std::shared_ptr<Module> network_of(std::string_view name, DType type) {
  auto network = make_network(name, {.widths = {8, 8, 12, 16, 20, 20, 16, 12, 12}, .seed = 2});
  stir(*network);
  settle(*network, input_of(name, DType::f32), momentum_of(name));
  network->to(type);
  return network;
}

class FoldedNetwork : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, FoldedNetwork,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

TEST_P(FoldedNetwork, equals_the_unfolded_one_up_to_rounding) {
  // The same real numbers in another order of rounding, some 50 layers deep: 2^-24 and 2^-53 times
  // a few hundred. Half types store the convolution's sum between layers only when unfolded.
  for (const auto& [type, tolerance] :
       {std::pair{DType::f32, 2e-5}, {DType::f64, 4e-14}, {DType::f16, 0.02}}) {
    const auto network = network_of(GetParam(), type);
    const SparseTensor x = input_of(GetParam(), type);
    const Tensor plain = run(*network, x);
    fold(*network);
    const Tensor folded = run(*network, x);
    EXPECT_LT(relative_difference(folded, plain), tolerance) << pumice::name_of(type);
    EXPECT_FALSE(same_bits(folded, plain)) << "folding changed nothing: did it happen?";
  }
}

TEST_P(FoldedNetwork, runs_one_layer_a_convolution) {
  const auto network = network_of(GetParam(), DType::f32);
  fold(*network);
  Profile profile;
  run(*network, input_of(GetParam(), DType::f32), {.profile = &profile});
  int joins = 0;
  for (const LayerRecord& layer : profile.layers)
    joins += layer.kind == "concatenate" ? 1 : 0;
  EXPECT_EQ(joins, std::string_view(GetParam()) == "minkunet42" ? 4 : 0);
  EXPECT_EQ(static_cast<int>(profile.layers.size()), network->layer_count() + joins);
}

TEST_P(FoldedNetwork, agrees_over_all_dataflows) {
  const auto network = network_of(GetParam(), DType::f64);
  fold(*network);
  const SparseTensor x = input_of(GetParam(), DType::f64);
  const Tensor chosen = run(*network, x);
  for (const Dataflow dataflow :
       {Dataflow::gather_gemm_scatter, Dataflow::fetch_on_demand, Dataflow::implicit_gemm}) {
    EXPECT_LT(relative_difference(run(*network, x, {.dataflow = dataflow}), chosen), 1e-13)
        << pumice::name_of(dataflow);
  }
}

TEST_P(FoldedNetwork, still_has_gradients) {
  const auto network = network_of(GetParam(), DType::f64);
  const auto gradient = [&] {
    network->clear_gradients();
    Context context{.record = true};
    const SparseTensor y = network->forward(input_of(GetParam(), DType::f64), context);
    backward(y.node, random_tensor(y.features.shape(), DType::f64, 4));
    return network->parameters().front().parameter->gradient();
  };
  const Tensor plain = gradient();
  fold(*network);
  EXPECT_TRUE(same_bits(gradient(), plain));
}

TEST(Folding, takes_a_bias_every_activation_and_a_lone_convolution_along) {
  const SparseTensor x = make_input(make_scene(), 4, DType::f64);
  for (const Activation activation : {Activation::relu, Activation::leaky_relu, Activation::silu,
                                      Activation::gelu, Activation::sigmoid, Activation::tanh}) {
    ConvolutionSpec spec = submanifold(4, 6);
    spec.bias = true;
    Sequential network({std::make_shared<Convolution>(spec), std::make_shared<BatchNorm>(6),
                        std::make_shared<Activate>(activation, 0.3),
                        std::make_shared<Convolution>(submanifold(6, 6)),
                        std::make_shared<Activate>(activation, 0.3), std::make_shared<BatchNorm>(6),
                        std::make_shared<Convolution>(submanifold(6, 3))});
    initialize(network, 1);
    network.to(DType::f64);
    stir(network);
    network.eval();
    const Tensor plain = run(network, x);
    fold(network);
    Profile profile;
    EXPECT_LT(relative_difference(run(network, x, {.profile = &profile}), plain), 1e-14);
    // conv-bn-act, conv-act, the norm behind it alone, conv
    EXPECT_EQ(profile.layers.size(), 4U);
  }
}

TEST(Folding, sees_parameters_that_change_afterwards) {
  const SparseTensor x = input_of("minkunet42", DType::f32);
  const auto network = network_of("minkunet42", DType::f32);
  fold(*network);
  const Tensor before = run(*network, x);
  for (const char* name : {"stem.0.weight", "stem.1.running_mean", "stage1.1.net.4.bias"}) {
    for (float& value : parameter_of(*network, name)->edit().span<float>())
      value -= 0.5F;
    const Tensor after = run(*network, x);
    const auto fresh = network_of("minkunet42", DType::f32);
    for (const NamedParameter& named : network->parameters()) {
      parameter_of(*fresh, named.name)->set(named.parameter->value());
    }
    fold(*fresh);
    EXPECT_TRUE(same_bits(after, run(*fresh, x))) << name;
    EXPECT_FALSE(same_bits(after, before)) << name;
  }
}

TEST(Folding, belongs_to_evaluation) {
  const auto network = make_network("second");
  const std::string message = message_of([&] { fold(*network); });
  EXPECT_NE(message.find("is in training mode"), std::string::npos);
  EXPECT_NE(message.find("call eval() first"), std::string::npos);
  network->eval();
  fold(*network);
  EXPECT_TRUE(network->folded());
  network->train();
  EXPECT_FALSE(network->folded());
}

}   // namespace
}   // namespace pumice::nn
