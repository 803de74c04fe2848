// Bundles: what goes in comes out, and files that are cut, damaged, foreign or hostile are refused.
#include "jit/bundle_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <utility>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>

#include "support/temporary_folder.hpp"

namespace pumice::jit {
namespace {

constexpr std::size_t kHeaderBytes = 80;
constexpr std::size_t kEntryBytes = 128;
constexpr int kAnyCompiler = 99;

Digest source(int number) {
  return {static_cast<std::uint8_t>(number * 37), static_cast<std::uint8_t>(number)};
}

CompileResult kernel(int number) {
  CompileResult result;
  for (int i = 0; i < 500 + number; ++i)
    result.cubin.push_back(static_cast<std::byte>(i * number));
  result.log = "ptxas info    : Compiling entry function 'k" + std::to_string(number) +
               "' for 'sm_90a'\nptxas info    : Used 40 registers\n";
  return result;
}

void add(BundleWriter& writer, int number, CompilerVersion compiler = {12, 9}) {
  const CompileResult compiled = kernel(number);
  std::vector<std::byte> packed = BundleWriter::pack(compiled);
  writer.add({.source = source(number),
              .architecture = number % 2 == 0 ? "sm_90a" : "sm_120",
              .compiler = compiler,
              .stored_bytes = packed.size()},
             compiled, std::move(packed));
}

std::vector<std::byte> bundle_of(int kernels) {
  BundleWriter writer;
  for (int i = 1; i <= kernels; ++i)
    add(writer, i);
  return writer.finish();
}

class BundleFileTest : public ::testing::Test {
 protected:
  std::optional<BundleFile> open(const std::vector<std::byte>& bytes) {
    std::ofstream(path_, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
    return BundleFile::open(path_, problem_);
  }
  void expect_refused(const std::vector<std::byte>& bytes, const std::string& why) {
    EXPECT_FALSE(open(bytes).has_value());
    EXPECT_NE(problem_.find(why), std::string::npos) << problem_;
  }

  test::TemporaryFolder folder_;
  std::filesystem::path path_ = folder_ / "kernels.bundle";
  std::string problem_;
};

TEST_F(BundleFileTest, GivesBackWhatWasPutIn) {
  const auto bundle = open(bundle_of(20));
  ASSERT_TRUE(bundle.has_value()) << problem_;
  EXPECT_EQ(bundle->kernels().size(), 20u);
  for (int i = 1; i <= 20; ++i) {
    const auto found = bundle->find(source(i), kAnyCompiler, problem_);
    ASSERT_TRUE(found.has_value()) << i << ": " << problem_;
    EXPECT_EQ(found->cubin, kernel(i).cubin);
    EXPECT_EQ(found->log, kernel(i).log);
    ASSERT_EQ(found->kernels.size(), 1u);
    EXPECT_EQ(found->kernels[0].registers, 40);
  }
  EXPECT_FALSE(bundle->find(source(21), kAnyCompiler, problem_).has_value());
  EXPECT_EQ(problem_, "");
}

TEST_F(BundleFileTest, MayBeEmpty) {
  const auto bundle = open(BundleWriter().finish());
  ASSERT_TRUE(bundle.has_value()) << problem_;
  EXPECT_FALSE(bundle->find(source(1), kAnyCompiler, problem_).has_value());
}

TEST_F(BundleFileTest, HoldsTheSameBytesInAnyOrder) {
  BundleWriter forward, backward;
  for (int i = 1; i <= 5; ++i) {
    add(forward, i);
    add(backward, 6 - i);
  }
  EXPECT_EQ(forward.finish(), backward.finish());
  EXPECT_THROW(add(forward, 3), InternalError);
}

TEST_F(BundleFileTest, KernelsOfANewerCompilerDoNotCount) {
  BundleWriter writer;
  add(writer, 1, {13, 0});
  add(writer, 2, {12, 8});
  const auto bundle = open(writer.finish());
  ASSERT_TRUE(bundle.has_value()) << problem_;
  EXPECT_FALSE(bundle->find(source(1), 12, problem_).has_value());
  EXPECT_TRUE(bundle->find(source(2), 12, problem_).has_value());
  EXPECT_TRUE(bundle->find(source(1), 13, problem_).has_value());
}

TEST_F(BundleFileTest, WhatIsNoBundleIsRefusedWithAReason) {
  const std::vector<std::byte> good = bundle_of(3);
  expect_refused({}, "shorter than its header");
  expect_refused(std::vector<std::byte>(1000, std::byte{7}), "no bundle of kernels");
  auto bytes = good;
  bytes[8] = std::byte{9};
  expect_refused(bytes, "its format is 9");
  bytes = good;
  bytes[14] = std::byte{0xff};
  expect_refused(bytes, "more kernels than there can be");
  bytes = good;
  bytes[13] = std::byte{0xff};
  expect_refused(bytes, "shorter than its index");
  bytes = good;
  bytes[16] ^= std::byte{1};   // the digest of the device tree
  expect_refused(bytes, "its index is damaged");
  bytes = good;
  bytes.resize(kHeaderBytes + 2 * kEntryBytes);
  expect_refused(bytes, "shorter than its index");
  bytes = good;
  bytes.pop_back();
  expect_refused(bytes, "a kernel lies outside of it");
}

/// With a digest that fits, as someone who means harm would write it.
std::vector<std::byte> resealed(std::vector<std::byte> bytes) {
  std::uint32_t kernels = 0;
  std::memcpy(&kernels, bytes.data() + 12, sizeof(kernels));
  Sha256 digest;
  digest.add(std::span(bytes).first(kHeaderBytes - sizeof(Digest)));
  digest.add(std::span(bytes).subspan(kHeaderBytes, kernels * kEntryBytes));
  const Digest seal = digest.finish();
  std::memcpy(bytes.data() + kHeaderBytes - sizeof(Digest), seal.data(), sizeof(Digest));
  return bytes;
}

void put(std::vector<std::byte>& bytes, std::size_t at, std::uint64_t value) {
  std::memcpy(bytes.data() + at, &value, sizeof(value));
}

TEST_F(BundleFileTest, HostileIndicesAreRefused) {
  const std::vector<std::byte> good = bundle_of(3);
  EXPECT_TRUE(open(resealed(good)).has_value()) << problem_;
  auto bytes = good;
  bytes[16] ^= std::byte{1};
  expect_refused(resealed(bytes), "another version of Pumice");
  const std::size_t entry = kHeaderBytes + kEntryBytes;
  bytes = good;
  put(bytes, entry + 64, ~std::uint64_t{0});   // offset
  expect_refused(resealed(bytes), "outside of it");
  bytes = good;
  put(bytes, entry + 64, 0);   // in the header
  expect_refused(resealed(bytes), "outside of it");
  bytes = good;
  put(bytes, entry + 72, ~std::uint64_t{0} - 100);   // stored bytes
  expect_refused(resealed(bytes), "outside of it");
  bytes = good;
  put(bytes, entry + 80, std::uint64_t{1} << 60);   // cubin bytes
  expect_refused(resealed(bytes), "impossible size");
  bytes = good;
  put(bytes, entry + 88, std::uint64_t{1} << 60);   // log bytes
  expect_refused(resealed(bytes), "impossible size");
  for (const char* name : {"", "sm_", "sm_x", "sm_999999999999", "sm_90ab", "compute_90"}) {
    bytes = good;
    std::memset(bytes.data() + entry + 96, 0, 16);
    std::memcpy(bytes.data() + entry + 96, name, std::strlen(name));
    expect_refused(resealed(bytes), "has no name");
  }
  bytes = good;
  std::swap_ranges(bytes.begin() + kHeaderBytes, bytes.begin() + kHeaderBytes + kEntryBytes,
                   bytes.begin() + kHeaderBytes + kEntryBytes);
  expect_refused(resealed(bytes), "out of order");
}

TEST_F(BundleFileTest, ADamagedKernelIsNotedWhenItIsAskedForAndTheOthersServe) {
  std::vector<std::byte> bytes = bundle_of(3);
  bytes.back() ^= std::byte{1};
  const auto bundle = open(bytes);
  ASSERT_TRUE(bundle.has_value()) << problem_;
  int found = 0;
  int damaged = 0;
  for (int i = 1; i <= 3; ++i) {
    found += bundle->find(source(i), kAnyCompiler, problem_).has_value() ? 1 : 0;
    damaged += problem_ == "a kernel in it is damaged" ? 1 : 0;
  }
  EXPECT_EQ(found, 2);
  EXPECT_EQ(damaged, 1);
}

TEST_F(BundleFileTest, AKernelThatUnpacksToAnotherSizeIsNoted) {
  std::vector<std::byte> bytes = bundle_of(1);
  std::uint64_t cubin = 0;
  std::memcpy(&cubin, bytes.data() + kHeaderBytes + 80, sizeof(cubin));
  for (const std::uint64_t wrong :
       {cubin - 1, cubin + 1, std::uint64_t{1}, std::uint64_t{1} << 27}) {
    put(bytes, kHeaderBytes + 80, wrong);
    const auto bundle = open(resealed(bytes));
    ASSERT_TRUE(bundle.has_value()) << problem_;
    EXPECT_FALSE(bundle->find(source(1), kAnyCompiler, problem_).has_value());
    EXPECT_EQ(problem_, "a kernel in it does not unpack");
  }
}

TEST_F(BundleFileTest, ShrinkingWhileItIsOpenIsDamage) {
  const std::vector<std::byte> bytes = bundle_of(2);
  const auto bundle = open(bytes);
  ASSERT_TRUE(bundle.has_value());
  std::filesystem::resize_file(path_, kHeaderBytes + 2 * kEntryBytes + 10);
  EXPECT_FALSE(bundle->find(source(1), kAnyCompiler, problem_).has_value());
  EXPECT_EQ(problem_, "a kernel in it is damaged");
}

TEST_F(BundleFileTest, FoldersPipesAndFilesThatAnyoneMayWriteAreRefused) {
  EXPECT_FALSE(BundleFile::open(folder_.path(), problem_).has_value());
  EXPECT_EQ(problem_, "it is no regular file");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(BundleFile::open(folder_ / "pipe", problem_).has_value());
  EXPECT_EQ(problem_, "it is no regular file");
  EXPECT_FALSE(BundleFile::open(folder_ / "nothing", problem_).has_value());
  EXPECT_EQ(problem_, "");
  ASSERT_TRUE(open(bundle_of(1)).has_value());
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  EXPECT_FALSE(BundleFile::open(path_, problem_).has_value());
  EXPECT_EQ(problem_, "everyone may write it");
}

TEST_F(BundleFileTest, NoByteThatChangesIsNoticedTooLate) {
  const std::vector<std::byte> good = bundle_of(4);
  Random random(3, 1);
  for (int round = 0; round < 2000; ++round) {
    std::vector<std::byte> bytes = good;
    const auto size = static_cast<std::int64_t>(bytes.size());
    if (round % 4 == 0) bytes.resize(static_cast<std::size_t>(random.integer(0, size - 1)));
    for (std::int64_t i = random.integer(round % 4 == 0 ? 0 : 1, 3); i > 0 && !bytes.empty(); --i) {
      const auto at = random.integer(0, static_cast<std::int64_t>(bytes.size()) - 1);
      bytes[static_cast<std::size_t>(at)] ^= static_cast<std::byte>(random.integer(1, 255));
    }
    if (round % 2 == 0 && bytes.size() > kHeaderBytes + 4 * kEntryBytes && bytes[12] == good[12] &&
        bytes[13] == good[13] && bytes[14] == good[14] && bytes[15] == good[15])
      bytes = resealed(bytes);
    const auto bundle = open(bytes);
    if (!bundle) {
      EXPECT_NE(problem_, "") << round;
      continue;
    }
    for (int i = 1; i <= 4; ++i) {
      const auto found = bundle->find(source(i), kAnyCompiler, problem_);
      if (!found) continue;
      // An index sealed anew may cut between binary and log elsewhere; not one byte is another.
      std::vector<std::byte> all = found->cubin;
      const auto log = std::as_bytes(std::span(found->log));
      all.insert(all.end(), log.begin(), log.end());
      std::vector<std::byte> expected = kernel(i).cubin;
      const std::string text = kernel(i).log;
      const auto expected_log = std::as_bytes(std::span(text));
      expected.insert(expected.end(), expected_log.begin(), expected_log.end());
      EXPECT_EQ(all, expected) << round;
    }
  }
}

}   // namespace
}   // namespace pumice::jit
