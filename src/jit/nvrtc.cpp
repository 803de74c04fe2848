// dlopen of libnvrtc.
#include "jit/nvrtc.hpp"

#include <dlfcn.h>

#include <utility>

#include <pumice/core/error.hpp>

#include "core/cuda/driver.hpp"
#include "core/cuda/toolkit.hpp"
#include "core/environment.hpp"

namespace pumice::jit {
namespace {

template <class Function> bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

const char* find_functions(void* library, Nvrtc& functions) {
#define PUMICE_FIND(name, parameters) \
  if (!find(library, #name, functions.name)) return #name;
  PUMICE_NVRTC_FUNCTIONS(PUMICE_FIND)
#undef PUMICE_FIND
  return find(library, "nvrtcGetErrorString", functions.nvrtcGetErrorString)
             ? nullptr
             : "nvrtcGetErrorString";
}

/// The file that a function of an opened library lies in.
std::string file_of(void* library, const std::string& otherwise) {
  Dl_info info{};
  void* symbol = dlsym(library, "nvrtcVersion");
  if (symbol == nullptr || dladdr(symbol, &info) == 0 || info.dli_fname == nullptr)
    return otherwise;
  return info.dli_fname;
}

}   // namespace

NvrtcState open_nvrtc(const std::vector<std::string>& candidates) noexcept {
  NvrtcState state;
  void* library = nullptr;
  std::string first_reason;
  for (const std::string& candidate : candidates) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      state.path = file_of(library, candidate);
      break;
    }
    const char* said = dlerror();
    if (first_reason.empty()) first_reason = said == nullptr ? candidate : said;
  }
  if (library == nullptr) {
    state.reason = detail::concatenate("no NVRTC: ", first_reason,
                                       "; install CUDA's libnvrtc, or name it in PUMICE_NVRTC");
    return state;
  }
  if (const char* missing = find_functions(library, state.functions)) {
    state.reason =
        detail::concatenate(state.path, " is no NVRTC of CUDA 12 or later: it has no ", missing);
    return state;
  }
  state.functions.nvrtcVersion(&state.major, &state.minor);
  if (state.major * 1000 + state.minor * 10 < cuda::kOldestVersion) {
    state.reason = detail::concatenate(state.path, " is NVRTC ", state.major, '.', state.minor,
                                       ": Pumice needs 12.1 or later");
    return state;
  }
  int count = 0;
  if (state.functions.nvrtcGetNumSupportedArchs(&count) == 0 && count > 0) {
    state.architectures.resize(static_cast<std::size_t>(count));
    state.functions.nvrtcGetSupportedArchs(state.architectures.data());
  }
  return state;   // the library stays open for as long as the process lives
}

std::vector<std::string> nvrtc_candidates() {
  if (!environment::nvrtc().empty()) return {environment::nvrtc()};
  std::vector<std::string> names{"libnvrtc.so.13", "libnvrtc.so.12"};
  const int driver = cuda::driver_state().version;
  if (driver != 0 && driver < 13000) std::swap(names[0], names[1]);
  std::vector<std::string> candidates = names;
  for (std::string& library : cuda::toolkit_libraries(names))
    candidates.push_back(std::move(library));
  return candidates;
}

const NvrtcState& nvrtc_state() noexcept {
  static const NvrtcState& state = *new NvrtcState(open_nvrtc(nvrtc_candidates()));
  return state;
}

const Nvrtc& nvrtc() {
  const NvrtcState& state = nvrtc_state();
  PUMICE_EXPECTS(state.reason.empty(), "kernels cannot be compiled here: ", state.reason);
  return state.functions;
}

}   // namespace pumice::jit
