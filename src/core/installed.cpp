// Data that comes along is found from where the code lies, so that an installation can be moved.
#include "core/installed.hpp"

#include <dlfcn.h>
#include <link.h>

#include <system_error>

namespace pumice {

namespace fs = std::filesystem;

namespace {

/// The file that holds this code; empty where the system does not say.
fs::path own_file() {
  static const int kHere = 0;   // lies in the library, or in the program it is linked into
  Dl_info info{};
  link_map* holder = nullptr;
  if (dladdr1(&kHere, &info, reinterpret_cast<void**>(&holder), RTLD_DL_LINKMAP) == 0) return {};
  // A program has no name there, and argv[0] need not be a path.
  const bool is_program = holder == nullptr || holder->l_name == nullptr || *holder->l_name == '\0';
  std::error_code error;
  const fs::path file = fs::canonical(is_program ? "/proc/self/exe" : holder->l_name, error);
  return error ? fs::path() : file;
}

}   // namespace

std::vector<fs::path> installed_places(const std::string& kind) {
  const fs::path file = own_file();
  if (file.empty()) return {};
  const fs::path folder = file.parent_path();
  const fs::path data = fs::path("pumice") / kind;
  return {folder / data, folder.parent_path() / data, folder.parent_path() / "share" / data,
          folder.parent_path().parent_path() / "share" / data};
}

}   // namespace pumice
