// `pumice info`: the fields, and the numbers of a scan small enough to count by hand.
#include <cstdlib>

#include <fmt/format.h>

#include <pumice/core/safetensors.hpp>

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
  /// The JSON of a command that succeeds and warns in one line.
  nlohmann::json run_warned(std::vector<std::string> arguments, const std::string& warning) const {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.err.find("warning: " + warning), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find('\n'), outcome.err.size() - 1) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
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
  const nlohmann::json info = run_warned(
      {"info", scan_, "--voxel", "1", "--range", "50", "50", "0", "60", "60", "1", "--levels", "2"},
      "none of 5 points is in the range, so there are no voxels; give another --range");
  EXPECT_EQ(info.at("voxels"), nlohmann::json({0, 0}));
  EXPECT_EQ(info.at("pairs"), nlohmann::json({0, 0}));
}

TEST_F(InfoTest, AnEmptyScanHasNoVoxels) {
  write_points(path("empty.ply"), {});
  const nlohmann::json info = run_warned({"info", path("empty.ply"), "--levels", "2"},
                                         "there are no points, and so no voxels");
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
  const std::string holes = path("holes.pcd");
  write_text(holes,
             "# .PCD v0.7\nVERSION 0.7\nFIELDS x y z\nSIZE 4 4 4\nTYPE F F F\nCOUNT 1 1 1\n"
             "WIDTH 3\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 3\nDATA ascii\n"
             "0.5 0.5 0.5\nnan nan nan\n1.5 0.5 0.5\n");
  EXPECT_EQ(run_json({"info", holes, "--voxel", "1"}).at("pairs"), nlohmann::json({4}));
  EXPECT_EQ(run_json({"info", scan_}).at("dropped_points"), 0);
  const std::string out = path("out.safetensors");
  const std::vector<std::pair<std::vector<std::string>, int>> commands{
      {{"info", holes}, 1},
      {{"voxelize", holes, "--out", out}, 1},
      {{"view", holes, "--picture", path("holes.png")}, 1},
      {{"run", "second", holes, "--out", out}, 1},
      {{"run", "second", holes, scan_, holes, "--out", out}, 2}};
  for (const auto& [command, dropped] : commands) {
    SCOPED_TRACE(command.front());
    const nlohmann::json said = run_json(command);
    EXPECT_EQ(said.at("points"), dropped == 1 ? 2 : 9);
    EXPECT_EQ(said.at("dropped_points"), dropped);
    const std::string words = run_well(command).out;
    EXPECT_NE(words.find(fmt::format("({} more, not finite, left out)", dropped)),
              std::string::npos)
        << words;
  }
  // What the documentation says: finite points alone, scan after scan.
  EXPECT_EQ(SafetensorsFile::open(out).shape("point_to_voxel"), (Shape{9}));
}

TEST_F(InfoTest, TheLogSaysWhichMapsAreBuilt) {
  const auto said = [&](const char* topics, const std::vector<std::string>& command) {
    EXPECT_EQ(setenv("PUMICE_LOG", topics, 1), 0);
    const Outcome outcome = run(command);
    unsetenv("PUMICE_LOG");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return outcome.err;
  };
  const auto count = [](const std::string& text, const std::string& part) {
    int found = 0;
    for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1))
      ++found;
    return found;
  };
  const std::string three = said("map", {"info", scan_, "--voxel", "1", "--levels", "3"});
  EXPECT_EQ(count(three, "map: "), 3) << three;
  EXPECT_NE(three.find("4 -> 4 rows, 8 pairs"), std::string::npos) << three;
  const std::string network = said("map", {"run", "second", scan_});
  EXPECT_EQ(count(network, "map: "), 8) << network;   // four of each kind, each once
  EXPECT_EQ(said("plan", {"info", scan_}), "");
  const std::string unknown = said("foo,map", {"doctor"});
  EXPECT_EQ(count(unknown, "\"foo\""), 1) << unknown;
  EXPECT_NE(unknown.find("plan, map, kernel, all"), std::string::npos) << unknown;
}

}   // namespace
}   // namespace pumice::test
