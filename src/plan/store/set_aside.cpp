// The folder itself is locked, so that no lock file is left in it.
#include "plan/store/set_aside.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <string>

namespace pumice::tune {

namespace fs = std::filesystem;

FolderLock::FolderLock(const fs::path& folder)
    : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) return;
  while (::flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
  }
}

FolderLock::~FolderLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

fs::path set_aside(const fs::path& file) {
  int number = 1;
  const auto name = [&] { return fs::path(file.string() + ".aside-" + std::to_string(number)); };
  while (fs::exists(fs::symlink_status(name())))
    ++number;
  fs::rename(file, name());
  // With its log under its new name SQLite still reads all of it.
  for (const char* ending : {"-wal", "-shm", "-journal"}) {
    const fs::path beside = file.string() + ending;
    if (fs::exists(fs::symlink_status(beside))) fs::rename(beside, name().string() + ending);
  }
  return name();
}

}   // namespace pumice::tune
