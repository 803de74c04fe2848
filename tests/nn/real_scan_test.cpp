// MinkUNet42 on a recorded sweep, where the data folder has one.
// Covers minkunet.
#include <gtest/gtest.h>

#include <map>

#include <pumice/nn/networks.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/voxelize.hpp>

#include "nn/scenes.hpp"
#include "support/data.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

using Site = std::array<std::int32_t, 3>;

std::set<Site> halved(const std::set<Site>& sites) {
  std::set<Site> result;
  for (const Site& site : sites) {
    // An arithmetic shift is a division rounded down.
    result.insert({site[0] >> 1, site[1] >> 1, site[2] >> 1});
  }
  return result;
}

TEST(MinkUNetOnARealSweep, has_the_voxels_and_pairs_known_for_it_on_every_level) {
  PUMICE_NEEDS_DATA(path, "lidar/semantickitti/seq00_000000.bin");
  const PointCloud cloud = read_points(path);
  const Voxels voxels = voxelize(cloud, point_features(cloud), {.size = {0.05F, 0.05F, 0.05F}});
  const SparseTensor x(CoordinateSet::create(voxels.coordinates), voxels.features);
  ASSERT_EQ(x.rows(), 91'767);

  const auto network = make_network("minkunet42", {.width_factor = 0.125});
  network->eval();
  fold(*network);
  Profile profile;
  Context context{.profile = &profile};
  const SparseTensor y = network->forward(x, context);
  EXPECT_EQ(y.features.shape(), Shape({91'767, 19}));
  for (const float score : y.features.span<float>())
    ASSERT_TRUE(std::isfinite(score));

  std::map<std::string, LayerRecord> layers;
  for (const LayerRecord& layer : profile.layers)
    layers[layer.name] = layer;
  EXPECT_NEAR(static_cast<double>(layers["stem.0"].pairs) / 91'767, 3.77, 0.005);

  std::set<Site> level;
  for (std::int64_t row = 0; row < x.rows(); ++row) {
    const std::int32_t* site = voxels.coordinates.data<std::int32_t>() + 4 * row;
    level.insert({site[1], site[2], site[3]});
  }
  const std::array<std::string, 4> stages{"stage1", "stage2", "stage3", "stage4"};
  for (std::size_t stage = 0; stage < stages.size(); ++stage) {
    const auto finer = static_cast<std::int64_t>(level.size());
    level = halved(level);
    const LayerRecord& down = layers[stages[stage] + ".0.net.0"];
    const LayerRecord& up = layers["up" + std::to_string(4 - stage) + ".0.net.0"];
    EXPECT_EQ(down.in_rows, finer);
    EXPECT_EQ(down.out_rows, static_cast<std::int64_t>(level.size()));
    EXPECT_EQ(down.pairs, finer) << "every voxel lies in one cell";
    EXPECT_EQ(up.out_rows, finer);
    EXPECT_EQ(up.pairs, finer);
    std::int64_t pairs = 0;
    for (const Site& site : level) {
      for (std::int32_t k = 0; k < 27; ++k) {
        pairs += static_cast<std::int64_t>(
            level.count({site[0] + k / 9 - 1, site[1] + k / 3 % 3 - 1, site[2] + k % 3 - 1}));
      }
    }
    EXPECT_EQ(layers[stages[stage] + ".1.net.0"].pairs, pairs);
  }
}

}   // namespace
}   // namespace pumice::nn
