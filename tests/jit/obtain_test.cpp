// Where a kernel comes from: the bundle, then the cache, then the compiler.
#include "jit/obtain.hpp"

#include <fstream>

#include <pumice/core/error.hpp>

#include "launch_kernels.hpp"
#include "nvrtc_support.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::jit {
namespace {

constexpr std::int64_t kAmple = std::int64_t{64} << 20;

Source small_source() {
  return {.name = "small.cu", .text = "extern \"C\" __global__ void small(int* x) { *x = 1; }\n"};
}

void write(const std::filesystem::path& path, const std::vector<std::byte>& bytes) {
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(Obtain, CompilesOnceThenFindsItInTheCache) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  const Obtained first = obtain(small_source(), "sm_80", cache, BundleSet());
  EXPECT_EQ(first.origin, Origin::compiler);
  const Obtained second = obtain(small_source(), "sm_80", cache, BundleSet());
  EXPECT_EQ(second.origin, Origin::cache);
  EXPECT_EQ(second.result.cubin, first.result.cubin);
  ASSERT_EQ(second.result.kernels.size(), 1u);
  EXPECT_EQ(second.result.kernels[0].registers, first.result.kernels[0].registers);
  EXPECT_EQ(obtain(small_source(), "sm_86", cache, BundleSet()).origin, Origin::compiler);
  EXPECT_EQ(cache.use().kernels, 2);
}

TEST(Obtain, SaysWhatItCompiled) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  std::vector<std::string> said;
  on_kernel_compiled([&](const CompiledKernel& kernel) {
    said.push_back(kernel.source + " " + kernel.architecture);
    EXPECT_GT(kernel.milliseconds, 0);
  });
  obtain(small_source(), "sm_80", cache, BundleSet());
  obtain(small_source(), "sm_80", cache, BundleSet());   // from the cache
  on_kernel_compiled({});
  obtain(small_source(), "sm_86", cache, BundleSet());
  EXPECT_EQ(said, std::vector<std::string>{"small.cu sm_80"});
}

TEST(Obtain, ADamagedFileIsCompiledAgainAndMended) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  const Obtained first = obtain(small_source(), "sm_80", cache, BundleSet());
  for (const auto& entry : std::filesystem::directory_iterator(cache.folder()))
    write(entry.path(), std::vector<std::byte>(3000, std::byte{0x7f}));
  EXPECT_EQ(obtain(small_source(), "sm_80", cache, BundleSet()).origin, Origin::compiler);
  const Obtained third = obtain(small_source(), "sm_80", cache, BundleSet());
  EXPECT_EQ(third.origin, Origin::cache);
  EXPECT_EQ(third.result.cubin, first.result.cubin);
}

void write_bundle(const std::filesystem::path& path, std::string_view architecture,
                  const CompileResult& compiled) {
  BundleWriter writer;
  writer.add({.source = source_digest(small_source(), architecture),
              .architecture = std::string(architecture),
              .compiler = {12, 0}},
             compiled, BundleWriter::pack(compiled));
  write(path, writer.finish());
}

CompileResult ahead(char content) {
  CompileResult result;
  result.cubin.assign(100, static_cast<std::byte>(content));
  return result;
}

TEST(Obtain, ABundleServesWithoutCompilerAndCache) {
  const test::TemporaryFolder folder;
  write_bundle(folder / "a.bundle", "sm_80", ahead('a'));
  const CubinCache none("", 0);
  const Obtained found =
      obtain(small_source(), "sm_80", none, BundleSet({folder / "empty", folder.path()}));
  EXPECT_EQ(found.origin, Origin::bundle);
  EXPECT_EQ(found.result.cubin, ahead('a').cubin);
}

TEST(Obtain, ABundleServesLaterDevicesOfItsGeneration) {
  const test::TemporaryFolder folder;
  write_bundle(folder / "a.bundle", "sm_80", ahead('a'));
  write_bundle(folder / "b.bundle", "sm_86", ahead('b'));
  const CubinCache none("", 0);
  const BundleSet bundles({folder.path()});
  EXPECT_EQ(obtain(small_source(), "sm_80", none, bundles).result.cubin, ahead('a').cubin);
  EXPECT_EQ(obtain(small_source(), "sm_86", none, bundles).result.cubin, ahead('b').cubin);
  EXPECT_EQ(obtain(small_source(), "sm_89", none, bundles).result.cubin, ahead('b').cubin);
  EXPECT_EQ(compatible_architectures("sm_103"), (std::vector<std::string>{"sm_103", "sm_100"}));
  EXPECT_EQ(compatible_architectures("sm_90a"), (std::vector<std::string>{"sm_90a"}));
  EXPECT_EQ(compatible_architectures("sm_89"),
            (std::vector<std::string>{"sm_89", "sm_86", "sm_80"}));
}

TEST(Obtain, ABundleOfAnotherSourceOrADamagedOneIsPassedOver) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache none("", 0);
  const auto path = folder / "a.bundle";
  write_bundle(path, "sm_120", ahead('a'));
  EXPECT_EQ(obtain(small_source(), "sm_80", none, BundleSet({path})).origin, Origin::compiler);
  write(path, std::vector<std::byte>(10));
  ::testing::internal::CaptureStderr();   // says that it is ignored
  EXPECT_EQ(obtain(small_source(), "sm_80", none, BundleSet({path})).origin, Origin::compiler);
  ::testing::internal::GetCapturedStderr();
}

TEST(Obtain, ASourceThatDoesNotCompileLeavesNothingBehind) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), kAmple);
  EXPECT_THROW((void)obtain({.name = "bad.cu", .text = "nonsense"}, "sm_80", cache, BundleSet()),
               Error);
  EXPECT_EQ(folder.files(), 0);
}

}   // namespace
}   // namespace pumice::jit
