// dlopen, and what it says.
#include "core/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>

#include <pumice/core/error.hpp>

#include "core/printable.hpp"

namespace pumice {
namespace {

/// What it is in place of a file, as opening a pipe could wait for its other end; empty for files.
/// Names without a slash are looked for where the system keeps its libraries.
std::string why_no_file(const std::string& candidate) {
  struct stat status {};
  if (candidate.find('/') == std::string::npos || ::stat(candidate.c_str(), &status) != 0 ||
      S_ISREG(status.st_mode))
    return {};
  return S_ISDIR(status.st_mode) ? "is a folder" : "is not a regular file";
}

}   // namespace

SharedLibrary::SharedLibrary(const WantedLibrary& wanted,
                             const std::vector<std::string>& candidates)
    : wanted_(wanted) {
  for (const std::string& candidate : candidates) {
    if (const std::string why = why_no_file(candidate); !why.empty()) {
      if (refusal_.empty()) refusal_ = printable_path(candidate) + ": " + why;
      continue;
    }
    library_ = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library_ != nullptr) {
      candidate_ = candidate;
      return;
    }
    const char* said = dlerror();
    if (refusal_.empty()) refusal_ = said == nullptr ? candidate : said;
  }
}

std::string SharedLibrary::file() const {
  link_map* map = nullptr;
  if (!is_open() || dlinfo(library_, RTLD_DI_LINKMAP, &map) != 0) return candidate_;
  return map->l_name;
}

std::string SharedLibrary::problem() const {
  if (!is_open()) return detail::concatenate("no ", wanted_.name, ": ", refusal_, wanted_.remedy);
  if (missing_ == nullptr) return {};
  return detail::concatenate(candidate_, " is no ", wanted_.name, wanted_.vintage, ": it has no ",
                             missing_);
}

void* SharedLibrary::address_of(const char* name) const {
  return dlsym(library_, name);
}

}   // namespace pumice
