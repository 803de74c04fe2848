// `pumice bench sparse` measures what it says, of matrices, folders and generated graphs.
// Covers bench_sparse and bench_sparse_calls.
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "small_matrix.hpp"
#include "support/gpu.hpp"

namespace pumice::test {
namespace {

using Json = nlohmann::json;
using Names = std::vector<std::string>;

const Names kPatterns{"pattern", "transpose"};
const Names kProducts{"spmm sum",
                      "spmm sum, gradient of features",
                      "spmm sum, gradient of values",
                      "spmm max",
                      "spmm max, gradient of features",
                      "sddmm",
                      "sddmm, gradients of both sides"};
const Names kRelational{"rgms", "rgms, gradients of features and weight"};

class BenchSparseTest : public SmallMatrixTest {
 protected:
  std::string folder() const {
    std::filesystem::create_directories(path("edges"));
    write_text(path("edges/edges.csv"), "0,0,1\n1,1,2\n2,0,0\n0,1,2\n");
    return path("edges");
  }
  Json bench(std::vector<std::string> more) const {
    more.insert(more.begin(), {"bench", "sparse", "--repeat", "3"});
    return run_json(more);
  }
  static Names calls_of(const Json& matrix) {
    Names calls;
    for (const Json& one : matrix.at("measurements"))
      calls.push_back(one.at("call"));
    return calls;
  }
  /// `patterns`, and `calls` as often as there are precisions and channels.
  static Names expected(Names patterns, const Names& calls, int times) {
    for (int i = 0; i < times; ++i)
      patterns.insert(patterns.end(), calls.begin(), calls.end());
    return patterns;
  }
  static void expect_figures(const Json& matrix) {
    const auto entries = matrix.at("entries").get<double>();
    for (const Json& one : matrix.at("measurements")) {
      SCOPED_TRACE(one.dump());
      EXPECT_GT(one.at("min_ms"), 0);
      EXPECT_LE(one.at("min_ms"), one.at("median_ms"));
      EXPECT_LE(one.at("median_ms"), one.at("max_ms"));
      const std::string call = one.at("call"), precision = one.at("precision");
      const double size = precision == "f64" ? 8 : precision == "f32" ? 4 : 2;
      const double rows = call.find("both sides") != std::string::npos ? 2 * entries : entries;
      const double bytes = precision.empty() ? 0 : rows * size * one.at("channels").get<double>();
      EXPECT_EQ(one.at("gathered_bytes"), bytes);
      EXPECT_EQ(one.at("copy_ms") > 0, bytes > 0);
      EXPECT_NEAR(one.at("gathered_gb_per_s").get<double>(),
                  bytes / one.at("median_ms").get<double>() / 1e6, 1e-6);
    }
  }
  void measures(const std::string& device, const std::vector<std::string>& precisions) const {
    std::string list;
    for (const std::string& one : precisions)
      list += (list.empty() ? "" : ",") + one;
    const Json said =
        bench({"--precision", list, matrix(), "--channels", "1,33", "--device", device, folder()});
    EXPECT_EQ(said.at("repeat"), 3);
    EXPECT_EQ(said.at("device").get<std::string>().substr(0, device.size()), device);
    EXPECT_NE(said.at("model"), "");
    ASSERT_EQ(said.at("matrices").size(), 2u);
    const Json& first = said.at("matrices")[0];
    EXPECT_EQ(first.at("name"), "m.mtx");
    EXPECT_EQ(first.at("rows"), 3);
    EXPECT_EQ(first.at("columns"), 4);
    EXPECT_EQ(first.at("entries"), 5);
    EXPECT_EQ(first.at("longest_row"), 5);
    const int times = 2 * static_cast<int>(precisions.size());
    EXPECT_EQ(calls_of(first), expected(kPatterns, kProducts, times));
    expect_figures(first);
    const Json& second = said.at("matrices")[1];
    EXPECT_EQ(second.at("name"), "edges");
    EXPECT_EQ(second.at("relations"), 2);
    EXPECT_EQ(second.at("longest_row"), 2);
    Names patterns = kPatterns, calls = kProducts;
    patterns.emplace_back("typed graph");
    calls.insert(calls.end(), kRelational.begin(), kRelational.end());
    EXPECT_EQ(calls_of(second), expected(patterns, calls, times));
    expect_figures(second);
  }
};

TEST_F(BenchSparseTest, MeasuresMatricesAndFoldersInEveryPrecision) {
  measures("cpu", {"f64", "f32", "f16", "bf16"});
}

TEST_F(BenchSparseTest, MeasuresAGeneratedGraph) {
  const Json said = bench({"--nodes", "33", "--edges", "200", "--channels", "8", "--threads", "2"});
  EXPECT_EQ(said.at("threads"), 2);
  ASSERT_EQ(said.at("matrices").size(), 1u);
  const Json& graph = said.at("matrices")[0];
  EXPECT_EQ(graph.at("name"), "power law");
  EXPECT_EQ(graph.at("rows"), 33);
  EXPECT_EQ(graph.at("columns"), 33);
  EXPECT_EQ(graph.at("entries"), 200);
  EXPECT_EQ(calls_of(graph), expected(kPatterns, kProducts, 1));
  expect_figures(graph);
}

TEST_F(BenchSparseTest, TakesAMatrixWithoutEntries) {
  write_text(path("none.mtx"), "%%MatrixMarket matrix coordinate pattern general\n31 1 0\n");
  const Json said = bench({path("none.mtx"), "--channels", "8"});
  const Json& none = said.at("matrices")[0];
  EXPECT_EQ(none.at("longest_row"), 0);
  EXPECT_EQ(calls_of(none), expected(kPatterns, kProducts, 1));
}

TEST_F(BenchSparseTest, SaysWhereAndHowItMeasured) {
  const std::string words =
      run_well({"bench", "sparse", matrix(), "--channels", "8", "--repeat", "2", "--threads", "1"})
          .out;
  for (const char* part :
       {", 1 thread, median of 2 after one warm-up\n", "\nm.mtx: 3 x 4, 5 entries, longest row 5\n",
        "gathered GB/s", "as a copy, ms", "\nspmm max, gradient of features  f32"})
    EXPECT_NE(words.find(part), std::string::npos) << part << " is not in: " << words;
}

TEST_F(BenchSparseTest, SaysWhatIsWrong) {
  const auto refused = [&](std::vector<std::string> more, const Names& named) {
    more.insert(more.begin(), {"bench", "sparse"});
    expect_refusal(more, named);
  };
  refused({path("absent.mtx")}, {"absent.mtx", "cannot be opened"});
  refused({matrix(), "--nodes", "5"}, {"--nodes", "m.mtx"});
  refused({"--edges", "5", matrix()}, {"--edges", "m.mtx"});
  refused({"--nodes", "0", "--edges", "5"}, {"--nodes 0"});
  refused({"--edges", "-1"}, {"--edges -1"});
  refused({"--channels", "0"}, {"--channels 0"});
  refused({"--repeat", "0"}, {"--repeat = 0"});
  refused({"--precision", "f32,tf32"}, {"--precision tf32", "f32, f64, f16 or bf16"});
  refused({"--precision", "f64", "--device", "cuda"}, {"--precision f64", "cuda:0"});
  refused({"--device", "tpu"}, {"--device"});
  refused({"--chanels", "8"}, {"no option --chanels of sparse", "--channels"});
  expect_refusal({"bench", "--repeat", "1", "sparse", matrix()}, {"--repeat", "behind it"});
  expect_refusal({"bench", "layers", "sparse", matrix()}, {"WHAT"});
}

class BenchSparseGpu : public BenchSparseTest {};

TEST_F(BenchSparseGpu, MeasuresOnADevice) {
  PUMICE_NEEDS_GPU();
  measures("cuda", on_emulator() ? Names{"f16"} : Names{"f32", "f16", "bf16"});
}

}   // namespace
}   // namespace pumice::test
