// PNG files through libpng.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <system_error>

#include <png.h>
#include <unistd.h>

#include <pumice/core/error.hpp>

#include "picture.hpp"

namespace pumice::cli {
namespace {

/// A file that is gone again unless it was given its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::filesystem::path& target)
      : target_(target),
        path_(target.string() + "." + std::to_string(::getpid()) + ".part"),
        file_(std::fopen(path_.c_str(), "wbx")) {
    PUMICE_EXPECTS(file_ != nullptr, "picture ", target_.string(), ": cannot be written (",
                   std::strerror(errno), "); choose a folder that exists and is yours");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (file_ != nullptr) std::fclose(file_);
    if (!kept_) std::remove(path_.c_str());
  }

  std::FILE* get() const { return file_; }
  void keep() {
    const bool closed = std::fclose(file_) == 0;
    file_ = nullptr;
    PUMICE_EXPECTS(closed, "picture ", target_.string(), ": cannot be written (",
                   std::strerror(errno), "); is the disk full?");
    std::error_code failure;
    std::filesystem::rename(path_, target_, failure);
    PUMICE_EXPECTS(!failure, "picture ", target_.string(), ": cannot be written (",
                   failure.message(), "); choose a file name that is not taken by a folder");
    kept_ = true;
  }

 private:
  std::filesystem::path target_;
  std::filesystem::path path_;
  std::FILE* file_;
  bool kept_ = false;
};

}   // namespace

void write_png(const std::filesystem::path& path, const Image& image) {
  PUMICE_ENSURES(image.pixels.size() == static_cast<std::size_t>(image.width) *
                                            static_cast<std::size_t>(image.height) * 3,
                 image.width, " x ", image.height, " with ", image.pixels.size(), " bytes");
  TemporaryFile file(path);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  const int written =
      png_image_write_to_stdio(&png, file.get(), 0, image.pixels.data(), 0, nullptr);
  PUMICE_EXPECTS(written != 0, "picture ", path.string(), ": cannot be written (", png.message,
                 "); is the disk full?");
  file.keep();
}

}   // namespace pumice::cli
