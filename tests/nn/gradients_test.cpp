// Whole networks, training and evaluation, beside central differences in float64.
// Covers the tape and the layers of whole networks.
#include <gtest/gtest.h>

#include <pumice/nn/initialize.hpp>
#include <pumice/nn/networks.hpp>
#include <pumice/nn/pooling.hpp>

#include "nn/central_differences.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

struct Case {
  const char* network;
  SceneOptions scene;
  int samples;   // elements of each parameter
};

// The encoders' grids are cut to their range; 40 cells of height leave two rows of output cells.
const std::array<Case, 3> kCases{
    Case{"minkunet42", {.sites = 72}, 2},
    Case{"centerpoint", {.sites = 48, .low = 0, .high = 60, .spatial_shape = Axes{64, 64, 41}}, 1},
    Case{"second", {.sites = 48, .low = 0, .high = 60, .spatial_shape = Axes{64, 64, 41}}, 1}};

class NetworkGradients : public ::testing::TestWithParam<Case> {
 protected:
  GradientReport check(bool training) {
    const auto network =
        make_network(GetParam().network, {.widths = {3, 3, 4, 5, 6, 6, 5, 4, 4}, .seed = 3});
    network->to(DType::f64);
    stir(*network);
    const SparseTensor x = make_input(make_scene(GetParam().scene), 4, DType::f64);
    if (!training) settle(*network, x, momentum_of(GetParam().network));
    return GradientCheck(
               [&](SparseTensor in, Context& c) { return network->forward(std::move(in), c); },
               *network, x, GetParam().samples)
        .run();
  }
};
INSTANTIATE_TEST_SUITE_P(Networks, NetworkGradients, ::testing::ValuesIn(kCases),
                         [](const auto& tested) { return tested.param.network; });

// Norms divide by deviations that are small on the coarsest level, so the loss bends more than a
// single layer's: 1e-6 instead of 1e-7.
TEST_P(NetworkGradients, agree_with_central_differences_in_training) {
  const GradientReport report = check(true);
  EXPECT_LT(report.worst, 1e-6) << report.where;
  EXPECT_EQ(report.silent, 0);
}

TEST_P(NetworkGradients, agree_with_central_differences_in_evaluation) {
  const GradientReport report = check(false);
  EXPECT_LT(report.worst, 1e-6) << report.where;
  EXPECT_EQ(report.silent, 0);
}

TEST(Training, a_classifier_of_whole_clouds_learns_its_labels) {
  // Gradient descent on conv-bn-relu, pool, conv-bn-relu, global pool, linear: four items, two
  // classes. The loss must fall to a tenth; with a wrong sign or a missing term it does not.
  const SparseTensor x = make_input(make_scene({.sites = 200, .batches = 4}), 3, DType::f64);
  Sequential network(
      {convolution_block(submanifold(3, 8)),
       std::make_shared<Pool>(Pooling::max, KernelWindow{.size = axes(3, 2), .stride = axes(3, 2)}),
       convolution_block(submanifold(8, 8)), std::make_shared<GlobalPool>(Pooling::average),
       std::make_shared<Linear>(8, 1)});
  initialize(network, 4);
  network.to(DType::f64);
  const std::array<double, 4> labels{1, -1, 1, -1};
  double first = 0;
  double last = 0;
  for (int step = 0; step < 60; ++step) {
    network.clear_gradients();
    Context context{.record = true};
    const SparseTensor y = network.forward(x, context);
    Tensor slope(y.features.shape(), DType::f64);
    last = 0;
    for (std::size_t item = 0; item < labels.size(); ++item) {
      const double miss = y.features.span<double>()[item] - labels[item];
      slope.span<double>()[item] = 2 * miss;
      last += miss * miss;
    }
    if (step == 0) first = last;
    backward(y.node, slope);
    for (const NamedParameter& named : network.parameters()) {
      const Tensor gradient = named.parameter->gradient();
      if (!named.parameter->spec().trainable) continue;
      double* value = named.parameter->edit().data<double>();
      for (std::int64_t i = 0; i < gradient.elements(); ++i) {
        value[i] -= 0.02 * gradient.data<double>()[i];
      }
    }
  }
  EXPECT_LT(last, 0.1 * first);
}

}   // namespace
}   // namespace pumice::nn
