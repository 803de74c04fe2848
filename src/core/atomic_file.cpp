// Over POSIX calls, for their error numbers and for fsync.
#include <pumice/core/atomic_file.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <string>
#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/system_call.hpp"

namespace pumice {

using detail::kMostPerCall;
using detail::reason;

namespace {

/// Where a write really goes: a link is followed, so that it stays a link.
std::filesystem::path resolved(const std::filesystem::path& path) {
  std::error_code error;
  AtomicFile::expect_replaceable(path);
  if (!std::filesystem::exists(path, error)) return path;
  const auto real = std::filesystem::canonical(path, error);
  PUMICE_EXPECTS(!error, path.string(), ": cannot be resolved: ", error.message());
  return real;
}

}   // namespace

void AtomicFile::expect_replaceable(const std::filesystem::path& path) {
  std::error_code absent;
  const auto status = std::filesystem::status(path, absent);
  PUMICE_EXPECTS(!std::filesystem::exists(status) || std::filesystem::is_regular_file(status),
                 path.string(),
                 ": is not a regular file, so it is not overwritten; give another name");
}

AtomicFile::AtomicFile(const std::filesystem::path& path) : target_(resolved(path)) {
  static std::atomic<unsigned> serial{0};
  temporary_ = target_;
  temporary_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(serial++);
  descriptor_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  PUMICE_EXPECTS(descriptor_ >= 0, path.string(), ": cannot be written: ", reason(errno));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t put = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostPerCall));
    if (put < 0 && errno == EINTR) continue;
    PUMICE_EXPECTS(put >= 0, target_.string(), ": cannot be written: ", reason(errno));
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
}

void AtomicFile::commit() {
  // Without the fsync a crash after the rename could leave an empty file under the good name.
  PUMICE_EXPECTS(::fsync(descriptor_) == 0, target_.string(),
                 ": cannot be written: ", reason(errno));
  const int descriptor = std::exchange(descriptor_, -1);
  PUMICE_EXPECTS(::close(descriptor) == 0, target_.string(),
                 ": cannot be written: ", reason(errno));
  PUMICE_EXPECTS(std::rename(temporary_.c_str(), target_.c_str()) == 0, target_.string(),
                 ": cannot be written: ", reason(errno));
  temporary_.clear();
}

}   // namespace pumice
