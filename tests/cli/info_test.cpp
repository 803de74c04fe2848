// `pumice info`: the fields, and the numbers of a scan small enough to count by hand.
#include "program.hpp"

namespace pumice::test {
namespace {

// With 1 m voxels: two points in (0,0,0), its neighbours (1,0,0) and (-1,0,0), and (5,5,0) alone.
//   level 0: 4 voxels; 4 meet themselves, (0,0,0) meets both neighbours and they meet it: 8 pairs.
//   level 1: (0,0,0), (-1,0,0), (2,2,0): 3 + 2 pairs.
//   level 2: (0,0,0), (-1,0,0), (1,1,0): the first meets both others: 3 + 4 pairs.
const std::vector<Point> kFivePoints{{0.5f, 0.5f, 0.5f, 0.1f},
                                     {0.6f, 0.4f, 0.2f, 0.2f},
                                     {1.5f, 0.5f, 0.5f, 0.3f},
                                     {-0.5f, 0.5f, 0.5f, 0.4f},
                                     {5.5f, 5.5f, 0.5f, 0.5f}};

class InfoTest : public ProgramTest {
 protected:
  InfoTest() { write_points(scan_, kFivePoints); }
  std::string scan_ = path("five.ply");
};

TEST_F(InfoTest, CountsPointsVoxelsAndPairsLevelByLevel) {
  const nlohmann::json info = run_json({"info", scan_, "--voxel", "1", "--levels", "3"});
  EXPECT_EQ(info.at("points"), 5);
  EXPECT_EQ(info.at("voxels"), nlohmann::json({4, 3, 3}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({8, 5, 7}));
  const auto low = info.at("bounds").at("min").get<std::vector<float>>();
  const auto high = info.at("bounds").at("max").get<std::vector<float>>();
  EXPECT_EQ(low, (std::vector<float>{-0.5f, 0.4f, 0.2f}));
  EXPECT_EQ(high, (std::vector<float>{5.5f, 5.5f, 0.5f}));
}

TEST_F(InfoTest, WithoutLevelsThereIsOne) {
  const nlohmann::json info = run_json({"info", scan_, "--voxel", "1"});
  EXPECT_EQ(info.at("voxels"), nlohmann::json({4}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({8}));
}

TEST_F(InfoTest, AVoxelMayDifferFromAxisToAxis) {
  // 2 m along x joins (0,0,0) with (1,0,0); 10 m along y and z changes nothing there but brings
  // (5,5,0) to (2,0,0), out of reach of both.
  const nlohmann::json info = run_json({"info", scan_, "--voxel", "2", "10", "10"});
  EXPECT_EQ(info.at("voxels"), nlohmann::json({3}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({5}));
}

TEST_F(InfoTest, ARangeLeavesPointsOutAndMovesTheOrigin) {
  // [0.4, 6) keeps four points; from 0.4 on, x = 0.5 and 1.5 and 5.5 are cells 0, 1 and 5.
  const nlohmann::json info = run_json(
      {"info", scan_, "--voxel", "1", "--range", "0.4", "0", "0", "6", "6", "1", "--levels", "1"});
  EXPECT_EQ(info.at("points"), 5);
  EXPECT_EQ(info.at("voxels"), nlohmann::json({3}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({5}));
}

TEST_F(InfoTest, ARangeThatHoldsNoPointLeavesZeroVoxels) {
  const nlohmann::json info = run_json({"info", scan_, "--voxel", "1", "--range", "50", "50", "0",
                                        "60", "60", "1", "--levels", "2"});
  EXPECT_EQ(info.at("voxels"), nlohmann::json({0, 0}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({0, 0}));
}

TEST_F(InfoTest, AnEmptyScanHasNoVoxels) {
  write_points(path("empty.ply"), {});
  const nlohmann::json info = run_json({"info", path("empty.ply"), "--levels", "2"});
  EXPECT_EQ(info.at("points"), 0);
  EXPECT_EQ(info.at("voxels"), nlohmann::json({0, 0}));
}

TEST_F(InfoTest, TheTableForPeopleHasTheSameNumbers) {
  const Outcome outcome = run_well({"info", scan_, "--voxel", "1", "--levels", "3"});
  EXPECT_NE(outcome.out.find("5 points"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("pairs/voxel"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("2.00"), std::string::npos) << outcome.out;   // 8 pairs, 4 voxels
}

TEST_F(InfoTest, PointsThatAreNotFiniteAreCountedWhereTheFormatAllowsThem) {
  write_text(path("holes.pcd"),
             "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
             "WIDTH 3\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 3\nDATA ascii\n"
             "0.5 0.5 0.5\nnan nan nan\n1.5 0.5 0.5\n");
  const nlohmann::json info = run_json({"info", path("holes.pcd"), "--voxel", "1"});
  EXPECT_EQ(info.at("points"), 2);
  EXPECT_EQ(info.at("dropped_points"), 1);
  EXPECT_EQ(info.at("pairs"), nlohmann::json({4}));
}

}   // namespace
}   // namespace pumice::test
