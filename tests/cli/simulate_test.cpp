// `pumice simulate`, `voxelize` and `view`: files that come out the same every time.
#include <pumice/core/safetensors.hpp>

#include "program.hpp"

namespace pumice::test {
namespace {

class SimulateTest : public ProgramTest {};

TEST_F(SimulateTest, TheSameSeedGivesTheSameFileWithAnyNumberOfThreads) {
  run_well({"simulate", "--seed", "5", "--beams", "32", "--out", path("a.ply"), "--threads", "1"});
  run_well({"simulate", "--seed", "5", "--beams", "32", "--out", path("b.ply"), "--threads", "3"});
  run_well({"simulate", "--seed", "6", "--beams", "32", "--out", path("c.ply")});
  EXPECT_EQ(read_text(path("a.ply")), read_text(path("b.ply")));
  EXPECT_NE(read_text(path("a.ply")), read_text(path("c.ply")));
}

TEST_F(SimulateTest, ASweepHasTheSizeAndDensityOfARealOne) {
  const nlohmann::json said = run_json({"simulate", "--seed", "1", "--out", path("sweep.ply")});
  EXPECT_GE(said.at("points"), 110'000);
  EXPECT_LE(said.at("points"), 125'000);
  const nlohmann::json info = run_json({"info", path("sweep.ply"), "--voxel", "0.05"});
  EXPECT_EQ(info.at("points"), said.at("points"));
  const double voxels = info.at("voxels").at(0);
  const double pairs = info.at("pairs").at(0);
  EXPECT_GE(voxels, 85'000);
  EXPECT_LE(voxels, 95'000);
  EXPECT_GE(pairs / voxels, 3);
  EXPECT_LE(pairs / voxels, 5);
}

TEST_F(SimulateTest, SensorsHaveNamesToo) {
  const auto made = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"simulate", "--seed", "3", "--out", path("sweep.ply")});
    return run_json(more);
  };
  const nlohmann::json named = made({"--sensor", "beams32"});
  EXPECT_EQ(named.at("sensor"), "beams32");
  EXPECT_EQ(named, made({"--beams", "32"}));
  const nlohmann::json waymo = made({"--sensor", "waymo64"});
  EXPECT_EQ(waymo.at("beams"), 64);
  EXPECT_NE(waymo.at("points"), made({"--beams", "64"}).at("points"));
  expect_refusal({"simulate", "--sensor", "waymo", "--out", path("a.ply")},
                 {"--sensor", "waymo64"});
  expect_refusal({"simulate", "--sensor", "waymo64", "--beams", "64", "--out", path("a.ply")},
                 {"--sensor", "--beams"});
}

TEST_F(SimulateTest, TenSweepsHoldTenTimesAsMany) {
  const nlohmann::json one =
      run_json({"simulate", "--beams", "32", "--seed", "2", "--out", path("one.ply")});
  const nlohmann::json ten = run_json(
      {"simulate", "--beams", "32", "--seed", "2", "--sweeps", "10", "--out", path("ten.ply")});
  const double ratio = ten.at("points").get<double>() / one.at("points").get<double>();
  EXPECT_GT(ratio, 9);
  EXPECT_LT(ratio, 11);
}

TEST_F(SimulateTest, VoxelizeWritesBothDirectionsBetweenPointsAndVoxels) {
  // Two points share voxel (0,0,0); one is alone in (1,0,0); one is cut off by the range.
  write_points(path("four.ply"),
               {{0.2f, 0.2f, 0.2f, 1}, {1.5f, 0, 0, 2}, {0.4f, 0.6f, 0.8f, 3}, {9, 0, 0, 4}});
  run_well({"voxelize", path("four.ply"), "--voxel", "1", "--range", "0", "0", "0", "4", "4", "4",
            "--out", path("voxels.safetensors")});
  const SafetensorsFile file = SafetensorsFile::open(path("voxels.safetensors"));
  const Tensor coords = file.get("coords");
  const Tensor features = file.get("features");
  ASSERT_EQ(coords.shape(), (Shape{2, 4}));
  ASSERT_EQ(features.shape(), (Shape{2, 4}));
  const auto row = [&](std::int32_t x) {
    return coords.data<std::int32_t>()[1] == x ? std::int64_t{0} : std::int64_t{1};
  };
  EXPECT_EQ(coords.data<std::int32_t>()[row(1) * 4 + 1], 1);
  const float* shared = features.data<float>() + row(0) * 4;
  EXPECT_FLOAT_EQ(shared[0], 0.3f);
  EXPECT_FLOAT_EQ(shared[1], 0.4f);
  EXPECT_FLOAT_EQ(shared[2], 0.5f);
  EXPECT_FLOAT_EQ(shared[3], 2);
  const Tensor owner = file.get("point_to_voxel");
  const auto span = owner.span<std::int64_t>();
  EXPECT_EQ((std::vector<std::int64_t>(span.begin(), span.end())),
            (std::vector<std::int64_t>{row(0), row(1), row(0), -1}));
  EXPECT_EQ(file.shape("voxel_begin"), (Shape{3}));
  EXPECT_EQ(file.shape("voxel_points"), (Shape{3}));
}

TEST_F(SimulateTest, VoxelizeReducesAsTold) {
  write_points(path("two.ply"), {{0.2f, 0.2f, 0.2f, 1}, {0.4f, 0.6f, 0.8f, 3}});
  const std::vector<std::pair<std::string, float>> expected{
      {"first", 1}, {"mean", 2}, {"max", 3}, {"sum", 4}};
  for (const auto& [reduction, intensity] : expected) {
    run_well({"voxelize", path("two.ply"), "--voxel", "1", "--reduction", reduction, "--out",
              path("voxels.safetensors")});
    const Tensor features = SafetensorsFile::open(path("voxels.safetensors")).get("features");
    ASSERT_EQ(features.shape(), (Shape{1, 4})) << reduction;
    EXPECT_EQ(features.data<float>()[3], intensity) << reduction;
  }
}

TEST_F(SimulateTest, ViewDrawsEveryColouring) {
  run_well({"simulate", "--beams", "32", "--out", path("sweep.ply")});
  std::string previous;
  for (const char* colour : {"height", "intensity", "label"}) {
    run_well({"view", path("sweep.ply"), "--picture", path("view.png"), "--colour", colour,
              "--size", "640", "360"});
    const std::string picture = read_text(path("view.png"));
    EXPECT_TRUE(picture.starts_with("\x89PNG")) << colour;
    EXPECT_NE(picture, previous) << colour;
    previous = picture;
  }
}

TEST_F(SimulateTest, LabelsFromAFileColourAPictureUnasked) {
  write_points(path("slope.ply"), slope(20, 30));
  std::string labels;
  for (std::uint32_t point = 0; point < 600; ++point) {
    const std::uint32_t label = point % 2 == 0 ? 40 : 10;
    labels.append(reinterpret_cast<const char*>(&label), sizeof label);
  }
  write_text(path("slope.label"), labels);
  const auto picture = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"view", path("slope.ply"), "--picture", path("view.PNG")});
    run_well(more);
    return read_text(path("view.PNG"));
  };
  const std::string unasked = picture({"--labels", path("slope.label")});
  EXPECT_EQ(unasked, picture({"--labels", path("slope.label"), "--colour", "label"}));
  EXPECT_NE(unasked, picture({}));
}

}   // namespace
}   // namespace pumice::test
