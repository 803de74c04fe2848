// Renames what is in the way of a database, and never removes it.
#pragma once

#include <filesystem>

namespace pumice::tune {

/// One process at a time has it: who looks at a database, finds it useless and renames it must not
/// rename the one that another process has just made in its place. Where the file system has no
/// such locks there is none.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

/// Renames `file`, and SQLite's files beside it, to "<name>.aside-<number>", the first that is
/// free; returns that path. Throws std::filesystem::filesystem_error.
std::filesystem::path set_aside(const std::filesystem::path& file);

}   // namespace pumice::tune
