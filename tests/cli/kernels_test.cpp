// `pumice kernels`: lists, bundles and checks as a user meets them. Compiling needs NVRTC.
#include <cstdlib>
#include <map>
#include <set>

#include <pumice/core/atomic_file.hpp>
#include <pumice/jit/support.hpp>

#include "jit/bundle_file.hpp"
#include "program.hpp"

namespace pumice::test {
namespace {

class KernelsTest : public ProgramTest {
 protected:
  /// The result of a command that compiles, which says on standard error, without a terminal, that
  /// it has begun and how far it is.
  nlohmann::json compile_json(std::vector<std::string> arguments) const {
    arguments.emplace_back("--json");
    const Outcome outcome = run(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_TRUE(outcome.err.starts_with("compiling: 0 of ")) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }

  /// A table of one plan, whose tiles and sums of splits are not among what networks ask for.
  std::string table_of_plans() const {
    write_text(path("plans.json"),
               R"({"format": "pumice plans", "schema": 1, "plans": [
{"device":"any","version":"0.1.0","operation":"convolution","direction":"forward",)"
               R"("problem":"forward f16 32>32 offsets 27","rows_bucket":26,"density_bucket":null,)"
               R"("plan":"{\"dataflow\":\"implicit_gemm\",\"sort_by_mask\":true,\"splits\":2,)"
               R"(\"write\":\"slots\",\"tile\":{\"instruction\":\"mma_sync\",\"tile_rows\":128,)"
               R"(\"tile_columns\":32,\"tile_depth\":32,\"stages\":3,\"row_warps\":4,)"
               R"(\"column_warps\":1,\"blocks_per_sm\":4,\"resident_offsets\":0}}",)"
               R"("tuned_s":1,"untuned_s":1,"confidence":0,"samples":1,)"
               R"("measured":"2026-11-25T07:07:16.775Z"}
]})");
    return path("plans.json");
  }
};

#define PUMICE_NEEDS_COMPILER() \
  if (!kernel_compiler().available) GTEST_SKIP() << kernel_compiler().reason

TEST_F(KernelsTest, AreListedForEachArchitecture) {
  const nlohmann::json said = run_json({"kernels", "list"});
  EXPECT_EQ(said.at("per_architecture").size(), 6u);
  EXPECT_EQ(said.at("kernels").size(), said.at("count").get<std::size_t>());
  std::map<std::string, std::set<std::string>> kinds;
  for (const auto& kernel : said.at("kernels")) {
    for (const auto& architecture : kernel.at("architectures"))
      kinds[architecture].insert(kernel.at("kind"));
  }
  for (const char* kind : {"coordinate sets", "tile maps", "packing", "wgmma tiles",
                           "mma.sync tiles", "fp32 tiles", "resident tiles", "wgmma gradients"}) {
    EXPECT_TRUE(kinds["sm_90a"].contains(kind)) << kind;
  }
  EXPECT_FALSE(kinds["sm_80"].contains("wgmma tiles"));
  const std::string words = run_well({"kernels", "list", "--arch", "sm_90a"}).out;
  EXPECT_NE(words.find("96 > 96"), std::string::npos);
}

TEST_F(KernelsTest, OfGivenChannelsAreListedAlone) {
  const nlohmann::json said = run_json(
      {"kernels", "list", "--arch", "sm_90a", "--channels", "48x80", "--precision", "bf16"});
  std::set<std::pair<int, int>> channels;
  for (const auto& kernel : said.at("kernels"))
    channels.emplace(kernel.at("in_channels").get<int>(), kernel.at("out_channels").get<int>());
  EXPECT_EQ(channels, (std::set<std::pair<int, int>>{{0, 0}, {48, 80}, {80, 48}}));
}

TEST_F(KernelsTest, BundlesAreBuiltAndFound) {
  PUMICE_NEEDS_COMPILER();
  const std::string shown =
      on_a_terminal({"kernels", "build", "--arch", "sm_80", "--channels", "16x16", "--precision",
                     "f16", "--plans", table_of_plans(), "--out", path("few.bundle"), "--json"});
  // The first kernels may take seconds, and all of them minutes.
  for (const char* bar : {"compiling [........................................] 0/",
                          "compiling [########################################]"})
    EXPECT_NE(shown.find(bar), std::string::npos) << shown;
  const auto said = nlohmann::json::parse(shown.substr(std::min(shown.find('{'), shown.size())));
  EXPECT_EQ(said.at("bytes"), std::filesystem::file_size(path("few.bundle")));
  EXPECT_GT(said.at("kernels"), 20);
  EXPECT_EQ(said.at("kernels"),
            run_json({"kernels", "list", "--arch", "sm_80", "--channels", "16x16", "--precision",
                      "f16", "--plans", table_of_plans()})
                .at("count"));
  std::string problem;
  const auto bundle = jit::BundleFile::open(path("few.bundle"), problem);
  ASSERT_TRUE(bundle.has_value()) << problem;
  EXPECT_EQ(bundle->kernels().size(), said.at("kernels").get<std::size_t>());
  for (const jit::BundledKernel& kernel : bundle->kernels()) {
    const auto found = bundle->find(kernel.source, kernel.compiler.major, problem);
    ASSERT_TRUE(found.has_value()) << problem;
    EXPECT_FALSE(found->kernels.empty());
  }
}

TEST_F(KernelsTest, SayAtCtrlCThatThereIsNoBundle) {
  PUMICE_NEEDS_COMPILER();
  const std::string shown =
      interrupted({"kernels", "build", "--arch", "sm_80", "--out", path("none.bundle")},
                  "compiling [");   // hundreds of kernels
  EXPECT_NE(shown.find("pumice: stopped, and no bundle was written"), std::string::npos) << shown;
  EXPECT_FALSE(std::filesystem::exists(path("none.bundle")));
}

TEST_F(KernelsTest, OfMeasuredPlansAreAmongTheSelected) {
  const auto kernels_in = [&](const std::vector<std::string>& more) {
    std::vector<std::string> command{"kernels",    "list",  "--arch",      "sm_80",
                                     "--channels", "16x16", "--precision", "f16"};
    command.insert(command.end(), more.begin(), more.end());
    return run_json(command).at("count").get<int>();
  };
  EXPECT_EQ(kernels_in({"--plans", table_of_plans()}), kernels_in({}) + 2)
      << "tiles, and sums of splits";
}

TEST_F(KernelsTest, AreCheckedForSpills) {
  PUMICE_NEEDS_COMPILER();
  const std::vector<std::string> selection{"--arch",      "sm_80", "--channels", "16x16",
                                           "--precision", "f16",   "--plans",    table_of_plans()};
  const auto with_selection = [&](const char* command) {
    std::vector<std::string> words{"kernels", command};
    words.insert(words.end(), selection.begin(), selection.end());
    return words;
  };
  const nlohmann::json said = compile_json(with_selection("check"));
  EXPECT_EQ(said.at("sources"), run_json(with_selection("list")).at("count"))
      << "those of measured plans too";
  EXPECT_EQ(said.at("wrong"), 0);
  EXPECT_EQ(said.at("results").size(), said.at("sources").get<std::size_t>());
  for (const auto& result : said.at("results")) {
    EXPECT_EQ(result.at("problem"), "") << result.at("name");
    for (const auto& kernel : result.at("kernels"))
      EXPECT_GT(kernel.at("registers"), 0) << kernel.at("name");
  }
}

std::vector<std::byte> small_bundle() {
  jit::CompileResult kernel;
  kernel.cubin.assign(64, std::byte{1});
  jit::BundleWriter writer;
  for (const char* architecture : {"sm_100", "sm_90a", "sm_80"}) {
    writer.add({.source = jit::Digest{static_cast<std::uint8_t>(architecture[3] + architecture[4])},
                .architecture = architecture,
                .compiler = {12, 9}},
               kernel, jit::BundleWriter::pack(kernel));
  }
  return writer.finish();
}

void write_bytes(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::filesystem::create_directories(path.parent_path());
  AtomicFile file(path);
  file.write(bytes);
  file.commit();
}

/// As an installation that was moved: the program in bin, the bundle in share.
TEST_F(KernelsTest, DoctorNamesTheBundlesOfAnInstallation) {
  if (PUMICE_SHARED_LIBRARY) GTEST_SKIP() << "bundles lie beside the library, which stays behind";
  const std::filesystem::path root = std::filesystem::canonical(folder_);
  const std::string program = (root / "bin" / "pumice").string();
  std::filesystem::create_directories(root / "bin");
  std::filesystem::copy_file(program_path(), program);
  const std::filesystem::path bundle = root / "share" / "pumice" / "kernels" / "a.bundle";
  write_bytes(bundle, small_bundle());
  const Outcome outcome = run_program(folder_, {"doctor", "--json"}, program);
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const nlohmann::json found = nlohmann::json::parse(outcome.out).at("kernel_bundles");
  ASSERT_EQ(found.size(), 1u) << outcome.out;
  EXPECT_EQ(found[0].at("path"), bundle.string());
  EXPECT_EQ(found[0].at("problem"), "");
  EXPECT_EQ(found[0].at("kernels"), 3);
  EXPECT_EQ(found[0].at("architectures"), (std::vector<std::string>{"sm_80", "sm_90a", "sm_100"}));
  EXPECT_EQ(found[0].at("compiler"), "12.9");
}

TEST_F(KernelsTest, DoctorSaysWhyABundleIsIgnored) {
  std::vector<std::byte> bytes = small_bundle();
  bytes.resize(100);
  write_bytes(path("cut.bundle"), bytes);
  ASSERT_EQ(setenv("PUMICE_BUNDLE", path("cut.bundle").c_str(), 1), 0);
  const Outcome outcome = run({"doctor"});
  unsetenv("PUMICE_BUNDLE");
  EXPECT_EQ(outcome.code, 0);
  EXPECT_NE(outcome.out.find("ignored, it is shorter than its index"), std::string::npos)
      << outcome.out;
  EXPECT_NE(outcome.err.find("cut.bundle are not used"), std::string::npos) << outcome.err;
}

TEST_F(KernelsTest, DoctorSaysThatABundleIsNotThere) {
  std::filesystem::create_directory(path("empty"));
  const std::vector<std::pair<std::string, std::string>> places{
      {path("gone.bundle"), "there is no such file"},
      {path("empty"), "the folder holds no .bundle file"}};
  for (const auto& [place, problem] : places) {
    ASSERT_EQ(setenv("PUMICE_BUNDLE", place.c_str(), 1), 0);
    const Outcome outcome = run({"doctor"});
    unsetenv("PUMICE_BUNDLE");
    EXPECT_EQ(outcome.code, 0);
    EXPECT_NE(outcome.out.find(place + ": ignored, " + problem), std::string::npos) << outcome.out;
  }
}

TEST_F(KernelsTest, RefusalsNameWhatIsWrong) {
  expect_refusal({"kernels"}, {"kernels"});
  expect_refusal({"kernels", "list", "--arch", "sm_75"}, {"sm_75", "sm_80", "sm_90a"});
  for (const char* channels : {"32", "32x", "x32", "0x32", "32x-1", "32x32x32", "99999x1"})
    expect_refusal({"kernels", "list", "--channels", channels}, {"--channels", channels, "32x64"});
  expect_refusal({"kernels", "list", "--precision", "f64"}, {"f64"});
  expect_refusal({"kernels", "build", "--out", path("kernels.zip")}, {"--out", ".bundle"});
  expect_refusal({"kernels", "build", "--out", path("a.bundle"), "--nvrtc", "/nowhere/libnvrtc.so"},
                 {"/nowhere/libnvrtc.so"});
  EXPECT_FALSE(std::filesystem::exists(path("a.bundle")));
}

}   // namespace
}   // namespace pumice::test
