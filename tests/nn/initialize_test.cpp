// First values: the same everywhere, and spread as they should be.
#include <pumice/nn/initialize.hpp>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>
#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

TEST(Initialisation, fills_the_range_that_fan_in_gives) {
  ConvolutionSpec spec = submanifold(32, 64);
  spec.groups = 2;
  spec.bias = true;
  Convolution layer(spec);
  initialize(layer, 1);
  const double bound = 1 / std::sqrt(27.0 * 16);
  double sum = 0;
  double squares = 0;
  const auto values = std::as_const(*layer.weight()).value().span<float>();
  for (const float value : values) {
    EXPECT_LE(std::abs(value), bound);
    sum += value;
    squares += double{value} * value;
  }
  const auto count = static_cast<double>(values.size());   // 27,648
  // A uniform variable's mean and variance, within four standard errors.
  EXPECT_LT(std::abs(sum / count), 4 * bound / std::sqrt(3 * count));
  EXPECT_NEAR(squares / count, bound * bound / 3, 4 * bound * bound * 0.3 / std::sqrt(count));
  EXPECT_LE(largest(layer.bias()->value()), bound);
  EXPECT_GT(largest(layer.bias()->value()), bound / 2);
}

TEST(Initialisation, norms_start_as_the_identity) {
  const auto network = make_network("second");
  for (const NamedParameter& named : network->parameters()) {
    const Tensor& value = std::as_const(*named.parameter).value();
    if (value.shape().rank() > 1) continue;
    const bool one = named.name.ends_with(".weight") || named.name.ends_with("running_var");
    for (const float element : value.span<float>())
      EXPECT_EQ(element, one ? 1.0F : 0.0F);
  }
}

TEST(Initialisation, follows_the_seed_and_the_name_alone) {
  const int before = threads();
  set_threads(1);
  const auto one = make_network("second", {.seed = 7});
  set_threads(3);
  const auto three = make_network("second", {.seed = 7});
  set_threads(before);
  EXPECT_EQ(fingerprint(*one), fingerprint(*three));
  EXPECT_NE(fingerprint(*one), fingerprint(*make_network("second", {.seed = 8})));
  // A layer's values do not depend on the layers before it.
  const auto wider = make_network("second", {.in_channels = 7, .seed = 7});
  EXPECT_TRUE(same_bits(parameter_of(*one, "conv_out.0.weight")->value(),
                        parameter_of(*wider, "conv_out.0.weight")->value()));
  EXPECT_FALSE(same_bits(parameter_of(*one, "conv2.1.0.weight")->value(),
                         parameter_of(*one, "conv2.2.0.weight")->value()));
}

TEST(Initialisation, gives_the_same_bits_on_every_machine) {
  // Integers and one rounding a number: nothing a compiler or a processor may choose.
  EXPECT_EQ(fingerprint(*make_network("minkunet42", {.width_factor = 0.25})), 0x76bce662ddcc5b7dU);
  EXPECT_EQ(fingerprint(*make_network("centerpoint")), 0xdaa8ce55eb14cb2fU);
  EXPECT_EQ(fingerprint(*make_network("second", {.seed = 1})), 0x79a42d102092344dU);
}

}   // namespace
}   // namespace pumice::nn
