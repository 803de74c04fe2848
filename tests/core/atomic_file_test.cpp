// A file appears when it is committed, and not before.
#include <pumice/core/atomic_file.hpp>

#include <fstream>
#include <iterator>
#include <span>
#include <string>

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
            folder.path().string() +
                ": is not a regular file, so it is not overwritten; give another name");
  const auto nowhere = folder.path() / "no" / "such" / "folder";
  EXPECT_EQ(message_of([&] { AtomicFile file(nowhere); }),
            nowhere.string() + ": cannot be written: No such file or directory");
}

}   // namespace
}   // namespace pumice
