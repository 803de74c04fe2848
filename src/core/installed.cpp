// Data that comes along is found from where the code lies, so that an installation can be moved.
#include "core/installed.hpp"

#include <dlfcn.h>

#include <system_error>

namespace pumice {

namespace fs = std::filesystem;

std::vector<fs::path> installed_places(const std::string& kind) {
  Dl_info info{};
  static const int kHere = 0;   // lies in the library, or in the program it is linked into
  if (dladdr(&kHere, &info) == 0 || info.dli_fname == nullptr) return {};
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  if (error) return {};
  const fs::path folder = file.parent_path();
  const fs::path data = fs::path("pumice") / kind;
  return {folder / data, folder.parent_path() / data, folder.parent_path() / "share" / data,
          folder.parent_path().parent_path() / "share" / data};
}

}   // namespace pumice
