// What a forward pass tells about itself.
#include <pumice/nn/profile.hpp>

#include <gtest/gtest.h>

#include <pumice/nn/networks.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

TEST(ProfileOfANetwork, lists_every_layer_with_rows_pairs_channels_and_plan) {
  const auto network = make_network("minkunet42", {.widths = {8, 8, 8, 8, 8, 8, 8, 8, 8}});
  network->eval();
  fold(*network);
  const SparseTensor x = make_input(make_scene({.sites = 500}), 4);
  Profile profile;
  std::vector<std::pair<int, int>> steps;
  profile.expected = network->layer_count();
  profile.progress = [&](int done, int count) { steps.emplace_back(done, count); };
  Context context{.profile = &profile};
  network->forward(x, context);

  ASSERT_EQ(static_cast<int>(steps.size()), network->layer_count());
  for (std::size_t i = 0; i < steps.size(); ++i) {
    EXPECT_EQ(steps[i], std::pair(static_cast<int>(i) + 1, network->layer_count()));
  }
  const LayerRecord& stem = profile.layers.front();
  EXPECT_EQ(stem.name, "stem.0");
  EXPECT_EQ(stem.kind, "submanifold 3x3x3 + norm + relu");
  EXPECT_EQ(stem.in_rows, 500);
  EXPECT_EQ(stem.out_rows, 500);
  EXPECT_EQ(stem.in_channels, 4);
  EXPECT_EQ(stem.out_channels, 8);
  const KernelMapPtr map = x.maps->maps().front();
  EXPECT_EQ(stem.pairs, map->pairs());
  EXPECT_DOUBLE_EQ(stem.gflop, 2e-9 * static_cast<double>(map->pairs()) * 4 * 8);
  EXPECT_FALSE(stem.plan.empty());

  EXPECT_DOUBLE_EQ(profile.map_ms(), x.maps->build_ms());
  const auto find = [&](const std::string& name) {
    for (const LayerRecord& layer : profile.layers) {
      if (layer.name == name) return layer;
    }
    ADD_FAILURE() << name;
    return LayerRecord{};
  };
  EXPECT_GT(find("stem.0").map_ms, 0);
  EXPECT_EQ(find("stem.3").map_ms, 0) << "the stem's second layer uses the first one's map";
  EXPECT_EQ(find("up1.0.net.0").kind, "inverse 2x2x2 /2x2x2 + norm + relu");
  EXPECT_EQ(find("up1.0.net.0").map_ms, 0);
  EXPECT_EQ(find("up1.0.net.0").pairs, find("stage4.0.net.0").pairs);
  EXPECT_EQ(find("stage1.1.net.3").kind, "submanifold 3x3x3 + norm + residual + relu");
  EXPECT_EQ(find("classifier.0").kind, "linear");
  double total = 0;
  for (const LayerRecord& layer : profile.layers)
    total += layer.ms;
  EXPECT_DOUBLE_EQ(profile.total_ms(), total);
}

TEST(ProfileOfANetwork, unfolded_names_norms_and_activations_too) {
  const auto network = make_network("second");
  Profile profile;
  Context context{.profile = &profile};
  const auto shape = find_network("second").spatial_shape;
  network->forward(make_input(make_scene({.low = 0, .spatial_shape = shape}), 4), context);
  ASSERT_EQ(static_cast<int>(profile.layers.size()), 3 * network->layer_count());
  EXPECT_EQ(profile.layers[1].name, "conv_input.1");
  EXPECT_EQ(profile.layers[1].kind, "batch norm");
  EXPECT_EQ(profile.layers[2].kind, "relu");
}

}   // namespace
}   // namespace pumice::nn
