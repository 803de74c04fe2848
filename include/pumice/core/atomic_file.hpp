// Files written so that nobody ever sees half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

namespace pumice {

/// Writes beside `path` and renames on `commit`; without a commit the old file stays as it was and
/// nothing else is left. Throws UserError when the place cannot be written.
class AtomicFile {
 public:
  /// UserError where `path` is something that no file can take the place of: a folder, a pipe, a
  /// device. What is not there yet is fine.
  static void expect_replaceable(const std::filesystem::path& path);

  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}   // namespace pumice
