// Files written so that nobody ever sees half of one.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace pumice {

/// Writes beside `path` under a name that cannot be guessed and renames on `commit`; without a
/// commit the old file stays as it was and nothing else is left. A link is followed, so that it
/// stays a link, also where it leads to no file yet. A file that is replaced keeps its mode and,
/// where this process may give them, its owner and group; a new one has the mode that the umask
/// leaves. Throws UserError when the place cannot be written.
class AtomicFile {
 public:
  /// UserError where `path` is something that no file can take the place of: a folder, a pipe, a
  /// device; and where it is a file that may not be written. What is not there yet is fine.
  static void expect_replaceable(const std::filesystem::path& path);

  explicit AtomicFile(const std::filesystem::path& path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  void expect(bool holds) const;   // UserError with the reason of the last system call

  std::string name_;   // for messages
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

}   // namespace pumice
