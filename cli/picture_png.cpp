// PNG files through libpng.
#include <cstddef>
#include <vector>

#include <png.h>

#include <pumice/core/atomic_file.hpp>
#include <pumice/core/error.hpp>

#include "picture.hpp"

namespace pumice::cli {

void write_png(const std::filesystem::path& path, const Image& image) {
  PUMICE_ENSURES(image.pixels.size() == static_cast<std::size_t>(image.width) *
                                            static_cast<std::size_t>(image.height) * 3,
                 image.width, " x ", image.height, " with ", image.pixels.size(), " bytes");
  AtomicFile file(path);
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = static_cast<png_uint_32>(image.width);
  png.height = static_cast<png_uint_32>(image.height);
  png.format = PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(png);
  std::vector<std::byte> encoded(bytes);
  const int written =
      png_image_write_to_memory(&png, encoded.data(), &bytes, 0, image.pixels.data(), 0, nullptr);
  PUMICE_ENSURES(written != 0, "libpng: ", png.message);
  encoded.resize(bytes);
  file.write(encoded);
  file.commit();
}

}   // namespace pumice::cli
