// `pumice bench driving` measures the workloads asked for, in every way there is, and says on what.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "program.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

class BenchDrivingTest : public ProgramTest {
 protected:
  BenchDrivingTest() { unsetenv("PUMICE_DATA"); }

  Json bench(Names more) const {
    more.insert(more.begin(), {"bench", "driving", "--size", "tiny", "--repeat", "1"});
    if (std::find(more.begin(), more.end(), "--rounds") == more.end())
      more.insert(more.end(), {"--rounds", "2"});
    return run_json(more);
  }
  static void expect_figures(const Json& said, const Names& ways) {
    std::size_t at = 0;
    for (const Json& one : said.at("measurements")) {
      SCOPED_TRACE(one.dump());
      EXPECT_EQ(one.at("way"), ways[at++ % ways.size()]);
      EXPECT_GT(one.at("voxels"), 0);
      EXPECT_GT(one.at("min_ms"), 0);
      EXPECT_LE(one.at("min_ms"), one.at("ms"));
      EXPECT_LE(one.at("ms"), one.at("max_ms"));
      EXPECT_LE(one.at("host_ms"), one.at("ms"));
      EXPECT_GT(one.at("peak_bytes"), 0);
    }
  }
};

const Names kOnTheCpu{"layers", "layers, maps kept"};

TEST_F(BenchDrivingTest, MeasuresTheSevenOnTheCpu) {
  const Json said = bench({"--csv", path("driving.csv")});
  ASSERT_EQ(said.at("measurements").size(), 14u);
  expect_figures(said, kOnTheCpu);
  std::set<std::string> names, inputs;
  for (const Json& one : said.at("measurements")) {
    names.insert(one.at("workload").get<std::string>());
    inputs.insert(one.at("input").get<std::string>());
    EXPECT_EQ(one.at("precision"), "f32");
    EXPECT_EQ(one.at("device_ms"), 0) << "there is no device";
  }
  EXPECT_EQ(names, (std::set<std::string>{"SK-M-1x", "SK-M-0.5x", "NS-M-1f", "NS-M-3f", "NS-C-10f",
                                          "WM-C-1f", "WM-C-3f"}));
  EXPECT_TRUE(inputs.contains("simulated beams32, 10 sweeps"));
  const std::string csv = read_text(path("driving.csv"));
  EXPECT_EQ(std::count(csv.begin(), csv.end(), '\n'), 15);
  EXPECT_TRUE(csv.starts_with("workload,input,voxels,precision,way,ms,"));
}

TEST_F(BenchDrivingTest, TakesRecordedScansWhereThereAreSome) {
  std::filesystem::create_directories(path("lidar/semantickitti"));
  std::string bytes;
  for (const Point& p : slope(20, 20))
    bytes.append(reinterpret_cast<const char*>(p.data()), sizeof p);
  write_text(path("lidar/semantickitti/seq00_000000.bin"), bytes);
  setenv("PUMICE_DATA", folder_.c_str(), 1);
  const Json said = bench({"--workload", "SK-M-0.5x,WM-C-1f", "--precision", "f32,bf16"});
  unsetenv("PUMICE_DATA");
  expect_figures(said, kOnTheCpu);
  Names inputs, precisions;
  for (const Json& one : said.at("measurements")) {
    inputs.push_back(one.at("input"));
    precisions.push_back(one.at("precision"));
  }
  EXPECT_EQ(inputs,
            (Names{"seq00_000000.bin", "seq00_000000.bin", "seq00_000000.bin", "seq00_000000.bin",
                   "simulated waymo64, 1 sweep", "simulated waymo64, 1 sweep",
                   "simulated waymo64, 1 sweep", "simulated waymo64, 1 sweep"}));
  EXPECT_EQ(precisions, (Names{"f32", "f32", "bf16", "bf16", "f32", "f32", "bf16", "bf16"}));
}

TEST_F(BenchDrivingTest, SaysThatTinyOnesAreNoFigures) {
  const std::string words = run_well({"bench", "driving", "--size", "tiny", "--rounds", "1",
                                      "--repeat", "1", "--workload", "WM-C-1f", "--threads", "1"})
                                .out;
  for (const char* part : {"1 thread, batch of 1, median of 1 round of 1 pass; tiny, for tests",
                           "layers, maps kept", "simulated waymo64, 1 sweep"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
  const std::string list = run_well({"bench", "driving", "--list"}).out;
  EXPECT_NE(list.find("NS-C-10f"), std::string::npos);
  EXPECT_NE(list.find("60,000"), std::string::npos);
}

TEST_F(BenchDrivingTest, SaysWhatIsWrong) {
  const auto refused = [&](Names more, const Names& named) {
    more.insert(more.begin(), {"bench", "driving"});
    expect_refusal(more, named);
  };
  refused({"--workload", "SK-M"}, {"workload \"SK-M\"", "SK-M-1x, SK-M-0.5x"});
  refused({"--scan", "scan.bin"}, {"--scan scan.bin", "add --workload"});
  refused({"--workload", "WM-C-1f", "--scan", path("absent.bin")}, {"absent.bin"});
  refused({"--rounds", "0"}, {"--rounds = 0"});
  refused({"--repeat", "0"}, {"--repeat = 0"});
  refused({"--precision", "tf32", "--size", "tiny"}, {"--precision tf32"});
  refused({"--size", "small"}, {"--size"});
  refused({"--device", "tpu"}, {"--device"});
  refused({"--ablation", "--size", "tiny"}, {"--ablation", "add --device cuda"});
  expect_refusal({"bench", "--repeat", "1", "driving"}, {"--repeat", "behind it"});
}

class BenchDrivingGpu : public BenchDrivingTest {};

TEST_F(BenchDrivingGpu, MeasuresGraphsOnADevice) {
  PUMICE_NEEDS_GPU();
  // In the emulator kernels take seconds: the narrowest network, in one type.
  const Names precisions = on_emulator() ? Names{"f16"} : Names{"f16", "bf16", "tf32", "f32"};
  const std::string workload = on_emulator() ? "SK-M-0.5x" : "SK-M-0.5x,WM-C-1f";
  for (const std::string& precision : precisions) {
    const Json said = bench(
        {"--rounds", "1", "--device", "cuda", "--workload", workload, "--precision", precision});
    expect_figures(said, {"layers", "layers, maps kept", "graph"});
    for (const Json& one : said.at("measurements"))
      EXPECT_GT(one.at("device_ms"), 0);
  }
}

TEST_F(BenchDrivingGpu, MeasuresGraphsWithoutOneThingEach) {
  PUMICE_NEEDS_GPU();
  const Json said = bench({"--rounds", "1", "--device", "cuda", "--workload", "SK-M-0.5x",
                           "--precision", "f16", "--ablation"});
  expect_figures(said, {"layers", "layers, maps kept", "graph", "graph, without groups",
                        "graph, implicit_gemm alone", "graph, fetch_on_demand alone"});
}

}   // namespace
}   // namespace pumice::test
