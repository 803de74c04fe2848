// The folder of compiled kernels: hits, damage, two processes, its bound, and folders that will not
// do.
#include "jit/cubin_cache.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <fstream>

#include <gtest/gtest.h>

#include "jit/cubin_file.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::jit {
namespace {

constexpr std::int64_t kAmple = std::int64_t{64} << 20;

/// A kernel that can be told from every other: its bytes all follow from `number`.
CompileResult kernel(int number, std::size_t bytes = 1000) {
  CompileResult compiled;
  for (std::size_t i = 0; i < bytes; ++i)
    compiled.cubin.push_back(static_cast<std::byte>(static_cast<std::size_t>(number) * 7 + i));
  compiled.log = "kernel " + std::to_string(number);
  return compiled;
}

Digest key(int number) {
  return {static_cast<std::uint8_t>(number), static_cast<std::uint8_t>(number >> 8)};
}

/// As if the file had last been used `minutes` ago.
void age(const std::filesystem::path& path, int minutes) {
  std::filesystem::last_write_time(
      path, std::filesystem::file_time_type::clock::now() - std::chrono::minutes(minutes));
}

TEST(CubinCache, FindsWhatWasStoredAndNothingElse) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "deep" / "kernels", kAmple);
  EXPECT_FALSE(cache.find(key(1)).has_value());
  cache.store(key(1), kernel(1));
  const CubinCache later(folder / "deep" / "kernels", kAmple);
  const auto found = later.find(key(1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->cubin, kernel(1).cubin);
  EXPECT_EQ(found->log, "kernel 1");
  EXPECT_FALSE(later.find(key(2)).has_value());
  EXPECT_EQ(later.use().kernels, 1);
  EXPECT_EQ(later.use().bytes,
            static_cast<std::int64_t>(std::filesystem::file_size(cache.path_of(key(1)))));
}

TEST(CubinCache, IsForTheUserAlone) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  cache.store(key(1), kernel(1));
  EXPECT_EQ(std::filesystem::status(cache.folder()).permissions(),
            std::filesystem::perms::owner_all);
}

TEST(CubinCache, WhatIsDamagedCountsAsMissingAndIsReplaced) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), kAmple);
  cache.store(key(1), kernel(1));
  std::filesystem::resize_file(cache.path_of(key(1)), 500);
  EXPECT_FALSE(cache.find(key(1)).has_value());
  cache.store(key(1), kernel(1));
  EXPECT_TRUE(cache.find(key(1)).has_value());

  // A good file under a wrong name.
  std::filesystem::copy_file(cache.path_of(key(1)), cache.path_of(key(2)));
  EXPECT_FALSE(cache.find(key(2)).has_value());
}

TEST(CubinCache, ALinkInThePlaceOfAKernelIsReplacedNotFollowed) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder / "kernels", kAmple);
  cache.store(key(2), kernel(2));
  std::ofstream(folder / "letter") << "dear";
  std::filesystem::create_symlink(folder / "letter", cache.path_of(key(1)));
  EXPECT_FALSE(cache.find(key(1)).has_value());
  cache.store(key(1), kernel(1));
  EXPECT_TRUE(cache.find(key(1)).has_value());
  EXPECT_EQ(std::filesystem::file_size(folder / "letter"), 4u);
}

TEST(CubinCache, WhatWasUsedLongestAgoGoesFirst) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), 3500);   // three kernels of 1,105 bytes or so
  for (int i = 1; i <= 3; ++i) {
    cache.store(key(i), kernel(i));
    age(cache.path_of(key(i)), 10 * (4 - i));
  }
  EXPECT_EQ(cache.use().kernels, 3);
  EXPECT_TRUE(cache.find(key(1)).has_value());   // now the latest used
  cache.store(key(4), kernel(4));
  EXPECT_EQ(cache.use().kernels, 3);
  EXPECT_LE(cache.use().bytes, cache.limit_bytes());
  EXPECT_TRUE(cache.find(key(1)).has_value());
  EXPECT_FALSE(cache.find(key(2)).has_value());
  EXPECT_TRUE(cache.find(key(4)).has_value());
}

TEST(CubinCache, AKernelLargerThanTheLimitIsNotKept) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), 900);
  cache.store(key(1), kernel(1));
  EXPECT_EQ(folder.files(), 0);
}

TEST(CubinCache, WhatAnInterruptedProcessLeftGoesAfterAnHourAndStrangersStay) {
  const test::TemporaryFolder folder;
  const CubinCache cache(folder.path(), kAmple);
  const std::string digest = hexadecimal(key(7));
  const auto left = folder / (digest + ".cubin.part-1-0");
  const auto fresh = folder / (digest + ".cubin.part-0123456789abcdef");
  const std::vector<std::string> strangers{
      "notes.txt",           "notes.cubin.txt",       "0123.cubin.part-1-0", "old.cubin",
      digest + ".cubin.bak", "x" + digest + ".cubin", digest + ".txt",       digest};
  for (const auto& path : {left, fresh})
    std::ofstream(path) << "x";
  for (const std::string& name : strangers) {
    std::ofstream(folder / name) << std::string(2000, 'x');
    age(folder / name, 61);
  }
  age(left, 61);
  cache.store(key(1), kernel(1));
  EXPECT_FALSE(std::filesystem::exists(left));
  EXPECT_TRUE(std::filesystem::exists(fresh));
  // Nor do they count towards the limit, or go when that is reached.
  const CubinCache small(folder.path(), 1500);
  small.store(key(2), kernel(2));
  EXPECT_EQ(small.use().kernels, 1);
  for (const std::string& name : strangers)
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
}

TEST(CubinCache, AFolderThatCannotBeWrittenIsNoError) {
  const test::TemporaryFolder folder;
  std::ofstream(folder / "file") << "in the way";
  const CubinCache inside_a_file(folder / "file" / "kernels", kAmple);
  inside_a_file.store(key(1), kernel(1));
  EXPECT_FALSE(inside_a_file.find(key(1)).has_value());

  const CubinCache nowhere("", kAmple);
  nowhere.store(key(1), kernel(1));
  EXPECT_FALSE(nowhere.find(key(1)).has_value());
  EXPECT_EQ(nowhere.use().kernels, 0);
}

TEST(CubinCache, ALinkThatLeadsNowhereIsSaidToBeThat) {
  const test::TemporaryFolder folder;
  const auto link = folder / "kernels";
  std::filesystem::create_symlink(folder / "absent", link);
  const CubinCache cache(link, kAmple);
  cache.store(key(1), kernel(1));
  EXPECT_EQ(cache.problem(),
            "it is a link to " + (folder / "absent").string() + ", which is not there");
  EXPECT_FALSE(std::filesystem::exists(folder / "absent"));
  std::filesystem::create_directory(folder / "absent");
  EXPECT_EQ(cache.problem(), "");
  cache.store(key(1), kernel(1));
  EXPECT_EQ(cache.use().kernels, 1);

  std::ofstream(folder / "file") << "in the way";
  EXPECT_EQ(CubinCache(folder / "file", kAmple).problem(), "it is no folder");
  EXPECT_EQ(CubinCache(folder / "not yet", kAmple).problem(), "");
  std::filesystem::create_directory(folder / "open");
  std::filesystem::permissions(folder / "open", std::filesystem::perms::all);
  EXPECT_EQ(CubinCache(folder / "open", kAmple).problem(), "everyone may write there");
}

TEST(CubinCache, AFolderThatAnyoneMayWriteIsNotUsed) {
  const test::TemporaryFolder folder;
  std::filesystem::permissions(folder.path(), std::filesystem::perms::all);
  const CubinCache cache(folder.path(), kAmple);
  cache.store(key(1), kernel(1));
  EXPECT_EQ(folder.files(), 0);
}

/// Stores and finds kernels as fast as it can; whatever is found has to be whole.
int hammer(const CubinCache& cache, int rounds) {
  int wrong = 0;
  for (int round = 0; round < rounds; ++round) {
    const int number = round % 5;
    cache.store(key(number), kernel(number, 20000));
    const auto found = cache.find(key((round + 2) % 5));
    if (found) wrong += found->cubin != kernel((round + 2) % 5, 20000).cubin ? 1 : 0;
  }
  return wrong;
}

TEST(CubinCache, TwoProcessesShareOneFolder) {
  const test::TemporaryFolder folder;
  // Room for three of the five, so that each process also removes what the other just wrote.
  const CubinCache cache(folder / "kernels", 65000);
  constexpr int kProcesses = 3;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) _exit(hammer(cache, 100) == 0 ? 0 : 1);
    children.push_back(child);
  }
  EXPECT_EQ(hammer(cache, 100), 0);
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  EXPECT_LE(cache.use().bytes, 65000 + kProcesses * 21000);   // at most one each not yet counted
  for (const auto& entry : std::filesystem::directory_iterator(cache.folder()))
    EXPECT_EQ(entry.path().extension(), ".cubin") << "left behind: " << entry.path();
}

TEST(CacheKey, DependsOnTheCompilersVersion) {
  EXPECT_NE(cache_key(key(1), 13, 0), cache_key(key(1), 13, 1));
  EXPECT_NE(cache_key(key(1), 13, 0), cache_key(key(1), 12, 0));
  EXPECT_NE(cache_key(key(1), 13, 0), cache_key(key(2), 13, 0));
  EXPECT_EQ(cache_key(key(1), 13, 0), cache_key(key(1), 13, 0));
}

}   // namespace
}   // namespace pumice::jit
