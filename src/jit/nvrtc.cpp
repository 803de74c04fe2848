// Opening libnvrtc.
#include "jit/nvrtc.hpp"

#include <mutex>
#include <utility>

#include <pumice/core/error.hpp>

#include "core/cuda/driver.hpp"
#include "core/cuda/toolkit.hpp"
#include "core/environment.hpp"
#include "core/shared_library.hpp"

namespace pumice::jit {
namespace {

void find_functions(SharedLibrary& library, Nvrtc& functions) {
#define PUMICE_FIND(name, parameters) library.require(#name, functions.name);
  PUMICE_NVRTC_FUNCTIONS(PUMICE_FIND)
#undef PUMICE_FIND
  library.require("nvrtcGetErrorString", functions.nvrtcGetErrorString);
}

struct Suggestions {
  std::mutex mutex;
  std::vector<std::string> paths;
};

Suggestions& suggestions() {
  static auto& all = *new Suggestions;
  return all;
}

}   // namespace

void suggest_nvrtc(std::string path) {
  const std::lock_guard lock(suggestions().mutex);
  suggestions().paths.push_back(std::move(path));
}

NvrtcState open_nvrtc(const std::vector<std::string>& candidates) noexcept {
  NvrtcState state;
  SharedLibrary library({.name = "NVRTC",
                         .vintage = " of CUDA 12 or later",
                         .remedy = "; install CUDA's libnvrtc, or name it in PUMICE_NVRTC"},
                        candidates);
  if (library.is_open()) find_functions(library, state.functions);
  state.path = library.file();
  state.reason = library.problem();
  if (!state.reason.empty()) return state;
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
  return state;
}

std::vector<std::string> nvrtc_candidates() {
  if (!environment::nvrtc().empty()) return {environment::nvrtc()};
  const std::vector<std::string> names = cuda::toolkit_names("nvrtc");
  std::vector<std::string> candidates;
  {
    const std::lock_guard lock(suggestions().mutex);
    candidates = suggestions().paths;
  }
  candidates.insert(candidates.end(), names.begin(), names.end());
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
