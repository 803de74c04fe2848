// Where a kernel comes from: the bundle, then the cache, then the compiler.
#include "jit/obtain.hpp"

#include <fstream>

#include <pumice/core/error.hpp>

#include "jit/cubin_file.hpp"
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
  const Obtained first = obtain(small_source(), "sm_80", cache, {});
  EXPECT_EQ(first.origin, Origin::compiler);
  const Obtained second = obtain(small_source(), "sm_80", cache, {});
  EXPECT_EQ(second.origin, Origin::cache);
  EXPECT_EQ(second.result.cubin, first.result.cubin);
  ASSERT_EQ(second.result.kernels.size(), 1u);
  EXPECT_EQ(second.result.kernels[0].registers, first.result.kernels[0].registers);
  EXPECT_EQ(obtain(small_source(), "sm_86", cache, {}).origin, Origin::compiler);
  EXPECT_EQ(cache.use().kernels, 2);
}

TEST(Obtain, ADamagedFileIsCompiledAgainAndMended) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  const Obtained first = obtain(small_source(), "sm_80", cache, {});
  for (const auto& entry : std::filesystem::directory_iterator(cache.folder()))
    write(entry.path(), std::vector<std::byte>(3000, std::byte{0x7f}));
  EXPECT_EQ(obtain(small_source(), "sm_80", cache, {}).origin, Origin::compiler);
  const Obtained third = obtain(small_source(), "sm_80", cache, {});
  EXPECT_EQ(third.origin, Origin::cache);
  EXPECT_EQ(third.result.cubin, first.result.cubin);
}

TEST(Obtain, ABundleServesWithoutCompilerAndCache) {
  const test::TemporaryFolder folder;
  const Digest digest = source_digest(small_source(), "sm_80");
  CompileResult ahead;
  ahead.cubin.assign(100, std::byte{0x42});
  write(folder / (hexadecimal(digest) + ".cubin"), encode_cubin(digest, ahead));
  const CubinCache none("", 0);
  const Obtained found = obtain(small_source(), "sm_80", none, {folder / "empty", folder.path()});
  EXPECT_EQ(found.origin, Origin::bundle);
  EXPECT_EQ(found.result.cubin, ahead.cubin);
}

TEST(Obtain, ABundleOfAnotherSourceOrADamagedOneIsPassedOver) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const Digest digest = source_digest(small_source(), "sm_80");
  const CubinCache none("", 0);
  const auto path = folder / (hexadecimal(digest) + ".cubin");
  write(path, encode_cubin(Digest{5}, CompileResult{}));
  EXPECT_EQ(obtain(small_source(), "sm_80", none, {folder.path()}).origin, Origin::compiler);
  write(path, std::vector<std::byte>(10));
  EXPECT_EQ(obtain(small_source(), "sm_80", none, {folder.path()}).origin, Origin::compiler);
}

TEST(Obtain, ASourceThatDoesNotCompileLeavesNothingBehind) {
  PUMICE_NEEDS_NVRTC();
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), kAmple);
  EXPECT_THROW((void)obtain({.name = "bad.cu", .text = "nonsense"}, "sm_80", cache, {}), Error);
  EXPECT_EQ(folder.files(), 0);
}

TEST(BundleFolders, LieBesideTheProgram) {
  const auto folders = bundle_folders();
  ASSERT_FALSE(folders.empty());
  for (const auto& folder : folders)
    EXPECT_TRUE(folder.is_absolute()) << folder;
  if (folders.size() == 2) {
    EXPECT_TRUE(folders[1].string().ends_with("/lib/pumice/kernels")) << folders[1];
  }
}

}   // namespace
}   // namespace pumice::jit
