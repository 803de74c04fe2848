// Files over POSIX calls, for their error numbers.
#include "core/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>

#include "core/memory.hpp"
#include "core/printable.hpp"
#include "core/system_call.hpp"

namespace pumice::detail {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int descriptor) : descriptor_(descriptor) {}
  Descriptor(Descriptor&& other) noexcept : descriptor_(std::exchange(other.descriptor_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  int get() const { return descriptor_; }

 private:
  int descriptor_;
};

class FileSource : public ByteSource {
 public:
  explicit FileSource(const std::filesystem::path& path)
      : name_(printable_path(path)),
        // A pipe whose other end nobody opens would be waited for without end.
        descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    PUMICE_EXPECTS(descriptor_.get() >= 0, name_, ": cannot be opened: ", reason(errno));
    struct stat status {};
    PUMICE_EXPECTS(::fstat(descriptor_.get(), &status) == 0, name_,
                   ": cannot be examined: ", reason(errno));
    PUMICE_EXPECTS(!S_ISDIR(status.st_mode), name_, ": is a folder; give the name of a file in it");
    PUMICE_EXPECTS(S_ISREG(status.st_mode), name_, ": is not a regular file");
    size_ = static_cast<std::uint64_t>(status.st_size);
  }
  std::uint64_t size() const override { return size_; }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    while (!out.empty()) {
      const ssize_t got = ::pread(descriptor_.get(), out.data(), std::min(out.size(), kMostPerCall),
                                  static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      PUMICE_EXPECTS(got >= 0, name_, ": cannot be read: ", reason(errno));
      PUMICE_EXPECTS(got > 0, name_, ": ended at byte ", offset, " while it was being read");
      out = out.subspan(static_cast<std::size_t>(got));
      offset += static_cast<std::uint64_t>(got);
    }
  }

 private:
  std::string name_;
  Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

class MemorySource : public ByteSource {
 public:
  explicit MemorySource(std::span<const std::byte> bytes) : bytes_(bytes.begin(), bytes.end()) {}
  std::uint64_t size() const override { return bytes_.size(); }
  void read(std::uint64_t offset, std::span<std::byte> out) const override {
    PUMICE_ENSURES(offset <= bytes_.size() && out.size() <= bytes_.size() - offset, "reading ",
                   out.size(), " bytes at ", offset, " of ", bytes_.size());
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), out.size(), out.begin());
  }

 private:
  std::vector<std::byte> bytes_;
};

}   // namespace

std::unique_ptr<ByteSource> open_file(const std::filesystem::path& path) {
  return std::make_unique<FileSource>(path);
}

std::unique_ptr<ByteSource> copy_of(std::span<const std::byte> bytes) {
  return std::make_unique<MemorySource>(bytes);
}

Buffer<std::byte> read_file(const std::filesystem::path& path) {
  const FileSource file(path);
  const std::string name = printable_path(path);
  expect_room(file.size(), name);
  auto bytes = allocated_for(
      name, [&] { return Buffer<std::byte>(static_cast<std::int64_t>(file.size())); });
  file.read(0, bytes.span());
  return bytes;
}

void expect_room(std::uint64_t bytes, std::string_view what) {
  PUMICE_EXPECTS(static_cast<double>(bytes) < memory_bytes(), what, ": ", bytes,
                 " bytes are more than this machine's memory, ",
                 static_cast<std::uint64_t>(memory_bytes()), "; give a smaller file");
}

}   // namespace pumice::detail
