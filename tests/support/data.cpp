// Where the real data lies.
#include "support/data.hpp"

#include <cstdlib>

namespace pumice::test {

std::optional<std::filesystem::path> data_file(const std::string& name) {
  const char* folder = std::getenv("PUMICE_DATA");
  const std::filesystem::path root =
      folder != nullptr ? std::filesystem::path(folder)
                        : std::filesystem::path(PUMICE_SOURCE_DIR) / ".." / "shared" / "data";
  const std::filesystem::path path = root / name;
  if (!std::filesystem::exists(path)) return std::nullopt;
  return path;
}

}   // namespace pumice::test
