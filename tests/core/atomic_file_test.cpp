// A file appears when it is committed, and not before.
#include <pumice/core/atomic_file.hpp>

#include <atomic>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using namespace test;

std::string text_in(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write(AtomicFile& file, const std::string& text) {
  file.write(std::as_bytes(std::span(text)));
}

TEST(AtomicFile, AppearsOnCommitAndReplacesWhatWasThere) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "result";
  for (const std::string text : {"first", "second"}) {
    const std::string before = text_in(path);
    AtomicFile file(path);
    write(file, text);
    EXPECT_EQ(text_in(path), before);
    file.commit();
    EXPECT_EQ(text_in(path), text);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(AtomicFile, LeavesNothingWithoutACommit) {
  const TemporaryFolder folder;
  {
    AtomicFile file(folder.path() / "result");
    write(file, "half of it");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

TEST(AtomicFile, SaysWhereItCannotBeWritten) {
  const TemporaryFolder folder;
  EXPECT_EQ(message_of([&] { AtomicFile file(folder.path()); }),
            folder.path().string() + ": is a folder; give the name of a file in it");
  const auto nowhere = folder.path() / "no" / "such" / "folder";
  EXPECT_EQ(message_of([&] { AtomicFile file(nowhere); }),
            nowhere.string() + ": cannot be written: No such file or directory");
}

std::filesystem::perms mode_of(const std::filesystem::path& path) {
  return std::filesystem::symlink_status(path).permissions();
}

TEST(AtomicFile, KeepsTheModeOfWhatItReplaces) {
  using std::filesystem::perms;
  const TemporaryFolder folder;
  const auto path = folder / "result";
  for (const perms mode : {perms(0600), perms(0640), perms(0644), perms(0755)}) {
    std::ofstream(path) << "old";
    std::filesystem::permissions(path, mode);
    AtomicFile file(path);
    write(file, "new");
    for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
      EXPECT_EQ(mode_of(entry.path()) & perms::others_all, mode & perms::others_all)
          << "readable by others while it is written";
    file.commit();
    EXPECT_EQ(mode_of(path), mode);
    EXPECT_EQ(text_in(path), "new");
  }
}

TEST(AtomicFile, LeavesAReadOnlyFileAlone) {
  const TemporaryFolder folder;
  const auto path = folder / "result";
  std::ofstream(path) << "old";
  std::filesystem::permissions(path, std::filesystem::perms(0444));
  EXPECT_EQ(message_of([&] { AtomicFile file(path); }),
            path.string() +
                ": may not be written, so it is not replaced; give another name, or allow it with "
                "chmod u+w");
  EXPECT_EQ(text_in(path), "old");
  EXPECT_EQ(folder.files(), 1);
}

TEST(AtomicFile, FollowsLinksSoThatTheyStayLinks) {
  namespace fs = std::filesystem;
  const TemporaryFolder folder;
  fs::create_directory(folder / "deep");
  std::ofstream(folder / "deep" / "there") << "old";
  fs::create_symlink("deep/there", folder / "to a file");
  fs::create_symlink("deep/not yet", folder / "to nothing");
  fs::create_symlink("to nothing", folder / "to a link");
  for (const char* name : {"to a file", "to nothing", "to a link"}) {
    AtomicFile file(folder / name);
    write(file, name);
    file.commit();
    EXPECT_TRUE(fs::is_symlink(folder / name)) << name;
    EXPECT_EQ(text_in(folder / name), name);
  }
  EXPECT_EQ(text_in(folder / "deep" / "there"), "to a file");
  EXPECT_EQ(text_in(folder / "deep" / "not yet"), "to a link");
  fs::create_symlink("round", folder / "round");
  EXPECT_EQ(message_of([&] { AtomicFile file(folder / "round"); }),
            (folder / "round").string() + ": its links lead in a circle");
  fs::create_symlink("no/such/folder", folder / "astray");
  EXPECT_EQ(message_of([&] { AtomicFile file(folder / "astray"); }),
            (folder / "astray").string() + ": cannot be written: No such file or directory");
}

TEST(AtomicFile, WritesUnderNamesThatNobodyCanGuess) {
  const TemporaryFolder folder;
  AtomicFile one(folder / "result");
  AtomicFile two(folder / "result");
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    names.push_back(entry.path().filename().string());
  ASSERT_EQ(names.size(), 2u);
  for (const std::string& name : names) {
    EXPECT_TRUE(name.starts_with("result.part-")) << name;
    EXPECT_EQ(name.size(), std::string("result.part-").size() + 16) << name;
  }
  EXPECT_NE(names[0].substr(12, 12), names[1].substr(12, 12)) << "they count";
}

TEST(AtomicFile, TakesTheLongestNameThereIs) {
  const TemporaryFolder folder;
  const auto path = folder / std::string(255, 'n');
  AtomicFile file(path);
  write(file, "text");
  file.commit();
  EXPECT_EQ(text_in(path), "text");
}

TEST(AtomicFile, OfManyThreadsIsAlwaysOneOfTheirs) {
  const TemporaryFolder folder;
  const auto path = folder / "result";
  {
    AtomicFile first(path);
    write(first, std::string(5000, 'x'));
    first.commit();
  }
  std::atomic<int> broken{0};
  std::vector<std::thread> threads;
  for (const char letter : {'a', 'b', 'c'}) {
    threads.emplace_back([&, letter] {
      for (int round = 0; round < 40; ++round) {
        AtomicFile file(path);
        write(file, std::string(5000, letter));
        file.commit();
        const std::string text = text_in(path);
        if (text.size() != 5000 || text.find_first_not_of(text[0]) != std::string::npos) ++broken;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(broken, 0);
  EXPECT_EQ(folder.files(), 1);
}

}   // namespace
}   // namespace pumice
