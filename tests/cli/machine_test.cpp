// What machines and scripts rely on: --help, --version, pure JSON, CSV, silence without a terminal.
// Covers every subcommand.
#include <cstdlib>

#include "program.hpp"

namespace pumice::test {
namespace {

class MachineTest : public ProgramTest {
 protected:
  MachineTest() { write_points(scan_, slope(20, 30)); }
  std::string scan_ = path("slope.ply");
};

TEST_F(MachineTest, EverySubcommandHasHelp) {
  const Outcome all = run_well({"--help"});
  for (const char* command :
       {"info", "run", "conv", "simulate", "voxelize", "view", "inspect", "bench", "doctor"}) {
    EXPECT_NE(all.out.find(command), std::string::npos) << command;
    const Outcome help = run_well({command, "--help"});
    EXPECT_NE(help.out.find("--json"), std::string::npos) << command;
    EXPECT_NE(help.out.find(command), std::string::npos) << command;
  }
  EXPECT_NE(all.out.find("kernels"), std::string::npos);
  for (const char* part : {"list", "build", "check"}) {
    EXPECT_NE(run_well({"kernels", part, "--help"}).out.find("--json"), std::string::npos) << part;
  }
  EXPECT_TRUE(run_well({"--version"}).out.starts_with("pumice "));
}

TEST_F(MachineTest, HelpOfRunNamesTheNetworks) {
  const std::string help = run_well({"run", "--help"}).out;
  for (const char* network : {"minkunet42", "centerpoint", "second"}) {
    EXPECT_NE(help.find(network), std::string::npos) << network;
  }
}

TEST_F(MachineTest, WithJsonThereIsNothingElseOnStandardOutput) {
  const auto& scan = scan_;
  EXPECT_EQ(run_json({"voxelize", scan, "--out", path("v.safetensors")}).at("points"), 600);
  EXPECT_EQ(run_json({"view", scan, "--picture", path("p.png")}).at("points"), 600);
  EXPECT_GT(run_json({"simulate", "--beams", "32", "--out", path("s.ply")}).at("points"), 0);
  EXPECT_TRUE(run_json({"doctor"}).is_object());
  // info, run, conv and bench have stories of their own.
}

TEST_F(MachineTest, DoctorSaysWhatThisMachineOffers) {
  const nlohmann::json found = run_json({"doctor"});
  for (const char* key : {"version", "processor", "threads", "memory_gib", "instructions", "bf16",
                          "cuda_driver", "kernel_compiler"}) {
    EXPECT_NE(found.at(key), "") << key;
  }
  EXPECT_GE(found.at("threads"), 1);
  EXPECT_GT(found.at("memory_gib"), 0.1);
  const Outcome words = run_well({"doctor"});
  EXPECT_NE(words.out.find(found.at("instructions").get<std::string>()), std::string::npos);
}

TEST_F(MachineTest, DoctorSaysWhyCudaCannotBeUsed) {
  ASSERT_EQ(setenv("PUMICE_CUDA_DRIVER", "/nowhere/libcuda.so.1", 1), 0);
  ASSERT_EQ(setenv("PUMICE_NVRTC", "/nowhere/libnvrtc.so.13", 1), 0);
  ASSERT_EQ(setenv("PUMICE_CACHE", path("kernels").c_str(), 1), 0);
  const nlohmann::json found = run_json({"doctor"});
  for (const char* name : {"PUMICE_CUDA_DRIVER", "PUMICE_NVRTC", "PUMICE_CACHE"})
    unsetenv(name);
  EXPECT_TRUE(found.at("cuda_driver")
                  .get<std::string>()
                  .starts_with("no CUDA driver: /nowhere/libcuda.so.1: "));
  EXPECT_TRUE(found.at("kernel_compiler")
                  .get<std::string>()
                  .starts_with("no NVRTC: /nowhere/libnvrtc.so.13: "));
  EXPECT_TRUE(found.at("cuda_devices").empty());
  EXPECT_EQ(found.at("kernel_cache").at("folder"), path("kernels"));
  EXPECT_EQ(found.at("kernel_cache").at("kernels"), 0);
  EXPECT_FALSE(std::filesystem::exists(path("kernels")));   // asking makes nothing
}

TEST_F(MachineTest, BenchMeasuresLayersAndWritesTheSameNumbersAsCsv) {
  const nlohmann::json said =
      run_json({"bench", "layers", "--scan", scan_, "--channels", "8", "--levels", "2", "--repeat",
                "1", "--threads", "2", "--csv", path("layers.csv")});
  EXPECT_EQ(said.at("threads"), 2);
  std::vector<std::string> names;
  for (const auto& m : said.at("measurements")) {
    names.push_back(m.at("name"));
    EXPECT_GT(m.at("rows"), 0) << m.at("name");
    EXPECT_GT(m.at("median_ms"), 0) << m.at("name");
    EXPECT_LE(m.at("min_ms"), m.at("median_ms")) << m.at("name");
    EXPECT_GE(m.at("max_ms"), m.at("median_ms")) << m.at("name");
  }
  EXPECT_EQ(names, (std::vector<std::string>{
                       "voxelize", "coordinates level 0", "map level 0", "forward level 0",
                       "input gradient level 0", "weight gradient level 0", "map level 1",
                       "forward level 1", "input gradient level 1", "weight gradient level 1"}));
  const std::string csv = read_text(path("layers.csv"));
  EXPECT_TRUE(csv.starts_with("name,rows,pairs,in_channels,out_channels,median_ms"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 11);
}

TEST_F(MachineTest, BenchMeasuresTheNetworksAskedFor) {
  const nlohmann::json said =
      run_json({"bench", "networks", "--network", "second", "--scan", scan_, "--repeat", "1"});
  ASSERT_EQ(said.at("measurements").size(), 2u);
  EXPECT_EQ(said.at("measurements")[0].at("name"), "second");
  EXPECT_GT(said.at("measurements")[0].at("gflop"), 0);
}

TEST_F(MachineTest, BenchScalesAStreetUntilItsCopiesAreFarOut) {
  const auto rows_of_maps = [&](const std::string& scan, std::vector<std::string> more) {
    more.insert(more.begin(), {"bench", "scaling", "--scan", scan, "--repeat", "1"});
    std::vector<std::int64_t> rows;
    const nlohmann::json said = run_json(more);
    for (const auto& m : said.at("measurements")) {
      EXPECT_GT(m.at("median_ms"), 0) << m.at("name");
      if (m.at("name") == "map") rows.push_back(m.at("rows"));
    }
    EXPECT_EQ(said.at("measurements").size(), 3 * rows.size());
    return rows;
  };
  // 128 rows of 16 copies, 8,192 voxels apart, reach 2^20 voxels.
  write_points(path("patch.ply"), slope(4, 5));
  const std::vector<std::int64_t> patch = rows_of_maps(path("patch.ply"), {});
  ASSERT_EQ(patch.size(), 12u);
  EXPECT_GT(patch[0], 0);
  for (std::size_t i = 1; i < patch.size(); ++i)
    EXPECT_EQ(patch[i], 2 * patch[i - 1]);
  // One point, as far out as a voxel can be.
  write_points(path("point.ply"), {{100e6f, -100e6f, 0, 0}});
  EXPECT_EQ(rows_of_maps(path("point.ply"), {}).size(), 12u);
  // A range keeps what it holds in every copy, and points kilometres apart leave room for few.
  EXPECT_EQ(rows_of_maps(path("patch.ply"), {"--range", "5", "-3", "-2", "5.04", "3", "2"}).size(),
            12u);
  write_points(path("far.ply"), {{0, 0, 0, 0}, {40'000, 0, 0, 0}, {0, 90'000, 0, 0}});
  EXPECT_EQ(rows_of_maps(path("far.ply"), {}), (std::vector<std::int64_t>{3}));
}

TEST_F(MachineTest, NoThreadsStandForAllProcessors) {
  const nlohmann::json said = run_json({"run", "second", scan_, "--threads", "0"});
  EXPECT_EQ(said.at("threads"), run_json({"doctor"}).at("threads"));
}

TEST_F(MachineTest, TheProgressBarIsSilentInAFile) {
  // run_well expects nothing on standard error.
  run_well({"run", "second", scan_});
}

TEST_F(MachineTest, TheProgressBarMovesOnATerminal) {
  const std::string shown = on_a_terminal({"run", "second", scan_});
  EXPECT_NE(shown.find("second [#"), std::string::npos) << shown;
  EXPECT_NE(shown.find("\r\033[K"), std::string::npos) << "the bar is not wiped away";
}

}   // namespace
}   // namespace pumice::test
