// POSIX calls, for what a file's state says and for reads that several threads may make at once.
#include "jit/read_only_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace pumice::jit {

ReadOnlyFile::ReadOnlyFile(const std::filesystem::path& path, Links links) {
  const int no_link = links == Links::refused ? O_NOFOLLOW : 0;
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | no_link);
  if (descriptor_ < 0) {
    if (errno != ENOENT) problem_ = std::string("it cannot be opened: ") + std::strerror(errno);
    return;
  }
  struct stat status {};
  if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
    problem_ = "it is no regular file";
    return;
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
  owner_ = status.st_uid;
  is_open_to_all_ = (status.st_mode & S_IWOTH) != 0;
}

ReadOnlyFile::ReadOnlyFile(ReadOnlyFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      problem_(std::move(other.problem_)),
      size_(other.size_),
      owner_(other.owner_),
      is_open_to_all_(other.is_open_to_all_) {}

ReadOnlyFile::~ReadOnlyFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::vector<std::byte> ReadOnlyFile::read(std::uint64_t offset, std::size_t size) const {
  std::vector<std::byte> bytes(size);
  std::size_t done = 0;
  while (done < size) {
    const ssize_t got =
        ::pread(descriptor_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

}   // namespace pumice::jit
