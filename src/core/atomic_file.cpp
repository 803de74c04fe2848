// Over POSIX calls, for their error numbers, for modes and for fsync.
#include <pumice/core/atomic_file.hpp>

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"
#include "core/system_call.hpp"

namespace pumice {

using detail::kMostPerCall;
using detail::reason;
namespace fs = std::filesystem;

namespace {

/// Where a write really goes: a link is followed, so that it stays a link. It may lead to a file
/// that is not there yet, which canonical() refuses.
fs::path resolved(const fs::path& path) {
  AtomicFile::expect_replaceable(path);
  constexpr int kMostLinks = 40;   // as the system follows them
  fs::path at = path;
  std::error_code error;
  for (int link = 0; fs::is_symlink(fs::symlink_status(at, error)); ++link) {
    PUMICE_EXPECTS(link < kMostLinks, printable_path(path), ": its links lead in a circle");
    const fs::path to = fs::read_symlink(at, error);
    PUMICE_EXPECTS(!error, printable_path(path), ": cannot be resolved: ", error.message());
    at = to.is_absolute() ? to : at.parent_path() / to;
  }
  return at;
}

/// 16 digits that nobody knows beforehand: a link or a file that someone put in the place of the
/// temporary one would have to be named like it.
std::string random_digits() {
  std::uint64_t number = 0;
  PUMICE_ENSURES(::getrandom(&number, sizeof number, 0) == ssize_t{sizeof number},
                 "no random numbers: ", reason(errno));
  std::array<char, 17> digits{};
  std::snprintf(digits.data(), digits.size(), "%016llx", static_cast<unsigned long long>(number));
  return digits.data();
}

/// Beside `target`, and no longer than a name may be (255 bytes).
fs::path temporary_for(const fs::path& target) {
  const std::string ending = ".part-" + random_digits();
  const std::string name = target.filename().string().substr(0, 255 - ending.size());
  return target.parent_path() / (name + ending);
}

constexpr mode_t kGroup = S_IRWXG;
constexpr mode_t kOthers = S_IRWXO;

/// Gives `descriptor` mode, owner and group of the file it will replace. Where the group cannot be
/// kept, members of the other one get what everyone has.
bool take_over(int descriptor, const struct stat& replaced) {
  struct stat made {};
  if (::fstat(descriptor, &made) != 0) return false;
  mode_t mode = replaced.st_mode & (S_IRWXU | kGroup | kOthers);
  if (made.st_gid != replaced.st_gid &&
      ::fchown(descriptor, static_cast<uid_t>(-1), replaced.st_gid) != 0)
    mode = (mode & ~kGroup) | (mode & kOthers) << 3;
  // Only a privileged process can; for others the file becomes theirs.
  if (made.st_uid != replaced.st_uid &&
      ::fchown(descriptor, replaced.st_uid, static_cast<gid_t>(-1)) != 0 && errno != EPERM)
    return false;
  return ::fchmod(descriptor, mode) == 0;
}

}   // namespace

void AtomicFile::expect_replaceable(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return;
  PUMICE_EXPECTS(!S_ISDIR(status.st_mode), printable_path(path),
                 ": is a folder; give the name of a file in it");
  PUMICE_EXPECTS(S_ISREG(status.st_mode), printable_path(path),
                 ": is not a regular file, so it is not overwritten; give another name");
  // A rename would replace what may not be written, and a privileged process may write anything.
  const bool is_writable = (status.st_mode & (S_IWUSR | S_IWGRP | S_IWOTH)) != 0 &&
                           ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  PUMICE_EXPECTS(is_writable, printable_path(path),
                 ": may not be written, so it is not replaced; give another name, or allow it with "
                 "chmod u+w");
}

AtomicFile::AtomicFile(const fs::path& path)
    : name_(printable_path(path)), target_(resolved(path)) {
  struct stat replaced {};
  const bool replaces = ::stat(target_.c_str(), &replaced) == 0;
  constexpr int kFlags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW;
  do {   // O_EXCL: another file of that name would be one in 2^64
    temporary_ = temporary_for(target_);
    // What replaces a private file is private from its first byte on.
    descriptor_ = ::open(temporary_.c_str(), kFlags, replaces ? 0600 : 0666);
  } while (descriptor_ < 0 && errno == EEXIST);
  const bool is_ready = descriptor_ >= 0 && (!replaces || take_over(descriptor_, replaced));
  if (is_ready) return;
  const int error = errno;   // no destructor follows
  if (descriptor_ >= 0) {
    ::close(descriptor_);
    ::unlink(temporary_.c_str());
  }
  detail::raise_user(name_, ": cannot be written: ", reason(error));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::expect(bool holds) const {
  PUMICE_EXPECTS(holds, name_, ": cannot be written: ", reason(errno));
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostPerCall));
    if (put < 0 && errno == EINTR) continue;
    expect(put >= 0);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  // Without the fsync a crash after the rename could leave an empty file under the good name.
  expect(::fsync(descriptor_) == 0);
  const int descriptor = std::exchange(descriptor_, -1);
  expect(::close(descriptor) == 0);
  expect(std::rename(temporary_.c_str(), target_.c_str()) == 0);
  temporary_.clear();
}

}   // namespace pumice
