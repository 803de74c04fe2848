// dlopen, and what it says.
#include "core/shared_library.hpp"

#include <dlfcn.h>
#include <link.h>

#include <pumice/core/error.hpp>

namespace pumice {

SharedLibrary::SharedLibrary(const WantedLibrary& wanted,
                             const std::vector<std::string>& candidates)
    : wanted_(wanted) {
  for (const std::string& candidate : candidates) {
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
