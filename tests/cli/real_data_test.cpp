// The counts that recorded scans are known to have, through the program.
// Covers info and run.
#include <cmath>

#include <pumice/core/safetensors.hpp>

#include "program.hpp"
#include "support/data.hpp"

namespace pumice::test {
namespace {

class RealDataTest : public ProgramTest {};

TEST_F(RealDataTest, EveryScanAtHandHasPointsVoxelsAndPairs) {
  PUMICE_NEEDS_DATA(lidar, "lidar");
  int scans = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(lidar)) {
    const std::filesystem::path& scan = entry.path();
    if (!entry.is_regular_file() || scan.extension() == ".label") continue;
    SCOPED_TRACE(scan);
    const nlohmann::json info = run_json({"info", scan.string(), "--levels", "5"});
    EXPECT_GE(info.at("points"), 30'000);
    ASSERT_EQ(info.at("voxels").size(), 5u);
    for (std::size_t level = 0; level < 5; ++level) {
      const std::int64_t voxels = info.at("voxels")[level];
      EXPECT_GT(voxels, 0);
      EXPECT_GE(info.at("pairs")[level], voxels);
      if (level > 0) {
        EXPECT_LT(voxels, info.at("voxels")[level - 1]);
      }
    }
    ++scans;
  }
  EXPECT_GT(scans, 0);
}

// Seconds a scan, and minutes under a sanitizer: tests/CMakeLists.txt calls it slow there.
TEST_F(RealDataTest, ASlimMinkUNetRunsOnEveryScanAtHand) {
  PUMICE_NEEDS_DATA(lidar, "lidar");
  int scans = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(lidar)) {
    const std::filesystem::path& scan = entry.path();
    if (!entry.is_regular_file() || scan.extension() == ".label") continue;
    SCOPED_TRACE(scan);
    const nlohmann::json said = run_json({"run", "minkunet42", scan.string(), "--width-factor",
                                          "0.1", "--out", path("out.safetensors")});
    EXPECT_GE(said.at("points"), 30'000);
    EXPECT_EQ(said.at("rows_out"), said.at("voxels"));
    const Tensor scores = SafetensorsFile::open(path("out.safetensors")).get("features");
    ASSERT_EQ(scores.shape(), (Shape{said.at("voxels").get<std::int64_t>(), 19}));
    float least = 0;
    float most = 0;
    for (const float score : scores.span<float>()) {
      ASSERT_TRUE(std::isfinite(score));
      least = std::min(least, score);
      most = std::max(most, score);
    }
    EXPECT_LT(least, most);
    ++scans;
  }
  EXPECT_GT(scans, 0);
}

TEST_F(RealDataTest, SemanticKittiHasItsKnownVoxelsAndPairs) {
  PUMICE_NEEDS_DATA(scan, "lidar/semantickitti/seq00_000000.bin");
  const nlohmann::json info = run_json({"info", scan.string(), "--voxel", "0.05"});
  EXPECT_EQ(info.at("points"), 124'668);
  EXPECT_EQ(info.at("voxels"), nlohmann::json({91'767}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({346'221}));
}

TEST_F(RealDataTest, TheCloudOfSpconvsBenchmarkHasItsKnownVoxelsAndPairs) {
  PUMICE_NEEDS_DATA(scan, "lidar/other/spconv_benchmark_cloud.npz");
  const nlohmann::json info = run_json(
      {"info", scan.string(), "--voxel", "0.1", "--range", "-80", "-80", "-2", "80", "80", "6"});
  EXPECT_EQ(info.at("points"), 198'130);
  EXPECT_EQ(info.at("voxels"), nlohmann::json({125'562}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({788'888}));
}

}   // namespace
}   // namespace pumice::test
