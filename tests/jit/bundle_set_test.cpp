// Which bundles a process looks in, and what it does with those it cannot use.
#include "jit/bundle_set.hpp"

#include <fstream>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace pumice::jit {
namespace {

constexpr int kAnyCompiler = 99;

CompileResult kernel(char content) {
  CompileResult result;
  result.cubin.assign(64, static_cast<std::byte>(content));
  return result;
}

void write(const std::filesystem::path& path, std::uint8_t source, char content) {
  BundleWriter writer;
  writer.add({.source = Digest{source}, .architecture = "sm_90a", .compiler = {12, 9}},
             kernel(content), BundleWriter::pack(kernel(content)));
  const std::vector<std::byte> bytes = writer.finish();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

TEST(BundleSet, TakesTheFirstThatHasAKernel) {
  const test::TemporaryFolder folder;
  write(folder / "b.bundle", 1, 'b');
  write(folder / "a.bundle", 1, 'a');
  write(folder / "c.bundle", 2, 'c');
  std::ofstream(folder / "a.txt") << "not one of them";
  const BundleSet bundles({folder.path()});
  ASSERT_EQ(bundles.bundles().size(), 3u);
  const auto first = bundles.find(Digest{1}, kAnyCompiler);
  ASSERT_TRUE(first.has_value());
  EXPECT_EQ(first->path, folder / "a.bundle");
  EXPECT_EQ(first->result.cubin, kernel('a').cubin);
  EXPECT_EQ(bundles.find(Digest{2}, kAnyCompiler)->path, folder / "c.bundle");
  EXPECT_FALSE(bundles.find(Digest{3}, kAnyCompiler).has_value());
}

TEST(BundleSet, SaysOnceWhatItIgnoresAndUsesTheRest) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.bundle") << "this is no bundle of kernels, however long it may be, and "
                                        "it is longer than a header";
  write(folder / "b.bundle", 1, 'b');
  ::testing::internal::CaptureStderr();
  const BundleSet bundles({folder / "a.bundle", folder / "b.bundle"});
  for (int i = 0; i < 3; ++i)
    EXPECT_TRUE(bundles.find(Digest{1}, kAnyCompiler).has_value());
  const std::string said = ::testing::internal::GetCapturedStderr();
  const std::string expected = "the kernels of " + (folder / "a.bundle").string() +
                               " are not used: it is no bundle of kernels; kernels are compiled";
  ASSERT_NE(said.find(expected), std::string::npos) << said;
  EXPECT_EQ(said.find("are not used"), said.rfind("are not used"));
  EXPECT_EQ(bundles.bundles()[0].problem, "it is no bundle of kernels");
  EXPECT_EQ(bundles.bundles()[1].problem, "");
}

TEST(BundleSet, SaysOnceThatAKernelIsDamaged) {
  const test::TemporaryFolder folder;
  write(folder / "a.bundle", 1, 'a');
  {
    std::fstream file(folder / "a.bundle", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1, std::ios::end);
    file.put('!');
  }
  ::testing::internal::CaptureStderr();
  const BundleSet bundles({folder.path()});
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(bundles.find(Digest{1}, kAnyCompiler).has_value());
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("a kernel in it is damaged"), std::string::npos) << said;
  EXPECT_EQ(said.find("damaged"), said.rfind("damaged"));
}

TEST(BundleSet, WhatIsNotThereIsAProblemOnlyWhereItWasNamed) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "program") << "a file, and no folder";
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(BundleSet({folder / "none.bundle"}).bundles().empty());
  EXPECT_TRUE(BundleSet({folder / "program" / "kernels"}).bundles().empty());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  const BundleSet named({folder / "none.bundle"}, BundleSet::Missing::is_a_problem);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("there is no such file"),
            std::string::npos);
  ASSERT_EQ(named.bundles().size(), 1u);
}

TEST(BundleSet, AFolderWithoutBundlesIsAProblemOnlyWhereItWasNamed) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "a.bundle.part") << "not finished";
  ::testing::internal::CaptureStderr();
  EXPECT_TRUE(BundleSet({folder.path()}).bundles().empty());
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  ::testing::internal::CaptureStderr();
  const BundleSet named({folder.path()}, BundleSet::Missing::is_a_problem);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("the folder holds no .bundle file"),
            std::string::npos);
  ASSERT_EQ(named.bundles().size(), 1u);
  EXPECT_EQ(named.bundles()[0].path, folder.path());
  EXPECT_FALSE(named.find(Digest{1}, kAnyCompiler).has_value());
}

}   // namespace
}   // namespace pumice::jit
