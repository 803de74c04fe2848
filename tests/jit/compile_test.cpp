// From text to binaries for every architecture, and what the compiler reports.
#include "jit/compile.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <thread>

#include <pumice/shared/key_layout.h>
#include <pumice/core/error.hpp>

#include "launch_kernels.hpp"
#include "nvrtc_support.hpp"

namespace pumice::jit {
namespace {

Source keys_source() {
  return {.name = "keys.cu",
          .text = R"(
#include <pumice/shared/key_layout.h>
static_assert(sizeof(pumice::KeyLayout) == )" +
                  std::to_string(sizeof(KeyLayout)) + R"();
struct Arguments { pumice::KeyLayout layout; const int32_t* cell; uint64_t* key; int size; };
extern "C" __global__ void encode(const __grid_constant__ Arguments a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < a.size) a.key[i] = pumice::encode_key(a.layout, 0, a.cell + 3 * i);
}
)"};
}

std::string error_of(const Source& source, std::string_view architecture) {
  try {
    (void)compile(source, architecture);
  } catch (const Error& error) {
    return error.what();
  }
  return "(nothing was thrown)";
}

class Architectures : public ::testing::TestWithParam<const char*> {};

TEST_P(Architectures, CompileTheSharedHeaders) {
  PUMICE_NEEDS_NVRTC();
  const std::string architecture = GetParam();
  if (!test::compiles_for(std::stoi(architecture.substr(3))))
    GTEST_SKIP() << "NVRTC " << nvrtc_state().major << '.' << nvrtc_state().minor
                 << " does not compile for " << architecture;
  const CompileResult compiled = compile(keys_source(), architecture);
  ASSERT_GT(compiled.cubin.size(), 500u);
  EXPECT_EQ(std::memcmp(compiled.cubin.data(), "\177ELF", 4), 0);
  ASSERT_EQ(compiled.kernels.size(), 1u);
  EXPECT_EQ(compiled.kernels[0].name, "encode");
  EXPECT_GT(compiled.kernels[0].registers, 8);
  EXPECT_LE(compiled.kernels[0].registers, 255);
  EXPECT_EQ(compiled.kernels[0].spill_store_bytes, 0);
  EXPECT_GT(compiled.milliseconds, 0);
}
INSTANTIATE_TEST_SUITE_P(Compile, Architectures,
                         ::testing::Values("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100",
                                           "sm_120"),
                         [](const auto& parameter) { return std::string(parameter.param); });

TEST(Compile, EveryHeaderOfTheDeviceTreeIsWithinReach) {
  PUMICE_NEEDS_NVRTC();
  EXPECT_EQ(compile(test::launch_source(), "sm_80").kernels.size(), 3u);
}

TEST(Compile, AnErrorShowsTheSourceAndWhatTheCompilerSays) {
  PUMICE_NEEDS_NVRTC();
  const Source wrong{.name = "conv_3x96.cu", .text = "extern \"C\" __global__ void f() { g(); }\n"};
  const std::string said = error_of(wrong, "sm_80");
  EXPECT_TRUE(
      said.starts_with("conv_3x96.cu does not compile for sm_80 (NVRTC_ERROR_COMPILATION):\n  "
                       "conv_3x96.cu(1): error"))
      << said;
  EXPECT_NE(said.find("identifier \"g\" is undefined"), std::string::npos) << said;
}

TEST(Compile, ALongComplaintIsCut) {
  PUMICE_NEEDS_NVRTC();
  Source wrong{.name = "many.cu", .text = ""};
  for (int i = 0; i < 40; ++i)
    wrong.text += "int a" + std::to_string(i) + " = nothing;\n";
  const std::string said = error_of(wrong, "sm_80");
  EXPECT_LT(std::count(said.begin(), said.end(), '\n'), 15);
  EXPECT_TRUE(said.ends_with("lines more; PUMICE_LOG=kernel shows all")) << said;
}

TEST(Compile, AnUnknownArchitectureIsToldWhichThereAre) {
  PUMICE_NEEDS_NVRTC();
  for (const char* architecture : {"sm_30", "sm_", "hopper", ""}) {
    const std::string said = error_of(keys_source(), architecture);
    EXPECT_TRUE(said.starts_with("keys.cu: NVRTC ")) << said;
    EXPECT_NE(said.find("; it knows sm_"), std::string::npos) << said;
  }
}

TEST(Compile, AHeaderThatIsNotThereIsAnErrorOfTheSource) {
  PUMICE_NEEDS_NVRTC();
  const std::string said =
      error_of({.name = "a.cu", .text = "#include <pumice/gone.h>\n"}, "sm_80");
  EXPECT_NE(said.find("pumice/gone.h"), std::string::npos) << said;
}

TEST(Compile, OptionsOfASourceReachTheCompiler) {
  PUMICE_NEEDS_NVRTC();
  const std::string text =
      "#ifndef WIDTH\n#error no width\n#endif\n"
      "extern \"C\" __global__ void f(float* x) { x[WIDTH] = 1; }\n";
  EXPECT_NE(error_of({.name = "w.cu", .text = text}, "sm_80").find("no width"), std::string::npos);
  EXPECT_EQ(
      compile({.name = "w.cu", .text = text, .options = {"-DWIDTH=3"}}, "sm_80").kernels.size(),
      1u);
}

TEST(Compile, ThreadsCompileAtTheSameTime) {
  PUMICE_NEEDS_NVRTC();
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&right, t] {
      Source source = keys_source();
      source.text += "// " + std::to_string(t) + "\n";
      right += compile(source, "sm_80").kernels.size() == 1 ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(right, 3);
}

TEST(SourceDigest, DependsOnTextOptionsAndArchitectureButNotOnTheName) {
  const Source source = keys_source();
  const Digest digest = source_digest(source, "sm_80");
  Source other = source;
  other.name = "elsewhere.cu";
  EXPECT_EQ(source_digest(other, "sm_80"), digest);
  EXPECT_NE(source_digest(source, "sm_86"), digest);
  other.text += ' ';
  EXPECT_NE(source_digest(other, "sm_80"), digest);
  other = source;
  other.options = {"-DA=1"};
  EXPECT_NE(source_digest(other, "sm_80"), digest);
}

TEST(Reports, AreReadFromTheLogOfEitherCompiler) {
  const auto reports = parse_reports(
      "a.cu(3): warning #177-D: variable \"x\" was declared but never referenced\n"
      "ptxas info    : 4 bytes gmem\n"
      "ptxas info    : Compiling entry function 'conv' for 'sm_90a'\n"
      "ptxas info    : Function properties for conv\n"
      "ptxas         .     48 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 168 registers, used 1 barriers, 48 bytes cumulative stack size, 1024 "
      "bytes smem, 400 bytes cmem[0]\n"
      "ptxas info    : Compile time = 2.946 ms\n"
      "ptxas info    : Compiling entry function 'scan' for 'sm_90a'\n"
      "ptxas info    : Function properties for scan\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers\n");
  ASSERT_EQ(reports.size(), 2u);
  EXPECT_EQ(reports[0].name, "conv");
  EXPECT_EQ(reports[0].registers, 168);
  EXPECT_EQ(reports[0].stack_bytes, 48);
  EXPECT_EQ(reports[0].spill_store_bytes, 12);
  EXPECT_EQ(reports[0].spill_load_bytes, 16);
  EXPECT_EQ(reports[0].shared_bytes, 1024);
  EXPECT_EQ(reports[1].name, "scan");
  EXPECT_EQ(reports[1].registers, 8);
  EXPECT_EQ(reports[1].shared_bytes, 0);
}

}   // namespace
}   // namespace pumice::jit
