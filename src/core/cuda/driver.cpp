// dlopen of libcuda, and its errors in words.
#include "core/cuda/driver.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include <pumice/core/error.hpp>

#include "core/environment.hpp"

namespace pumice::cuda {
namespace {

template <class Function> bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

/// The name of a needed function that the library lacks, or null.
const char* find_functions(void* library, Driver& functions) {
#define PUMICE_FIND(name, parameters) \
  if (!find(library, #name, functions.name)) return #name;
  PUMICE_CUDA_DRIVER_FUNCTIONS(PUMICE_FIND)
#undef PUMICE_FIND
#define PUMICE_FIND(name, parameters) find(library, #name, functions.name);
  PUMICE_CUDA_DRIVER_EXTRAS(PUMICE_FIND)
#undef PUMICE_FIND
  return nullptr;
}

std::string text_of(const Driver& functions, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  functions.cuGetErrorName(result, &name);
  functions.cuGetErrorString(result, &text);
  if (name == nullptr || text == nullptr) return "CUDA error " + std::to_string(result);
  return std::string(name) + ": " + text;
}

std::string start(void* library, const std::string& visible_devices, DriverState& state) {
  Result (*get_version)(int*) = nullptr;
  Result (*initialise)(unsigned) = nullptr;
  if (!find(library, "cuDriverGetVersion", get_version) || !find(library, "cuInit", initialise)) {
    return state.path + " is no CUDA driver: it has no cuInit";
  }
  get_version(&state.version);
  if (state.version < kOldestVersion) {
    return detail::concatenate("the CUDA driver is too old: it serves CUDA ",
                               version_text(state.version), ", Pumice needs ",
                               version_text(kOldestVersion), " (driver 530.30) or later");
  }
  if (const char* missing = find_functions(library, state.functions)) {
    return detail::concatenate(state.path, " has no ", missing, ", though it serves CUDA ",
                               version_text(state.version));
  }
  const Result started = initialise(0);
  if (started == kSuccess) state.functions.cuDeviceGetCount(&state.devices);
  if (started == kNoDevice || (started == kSuccess && state.devices == 0)) {
    std::string reason = detail::concatenate("the CUDA driver (CUDA ", version_text(state.version),
                                             ") sees no device");
    if (!visible_devices.empty())
      reason += "; it is told to show only \"" + visible_devices + "\" (CUDA_VISIBLE_DEVICES)";
    return reason;
  }
  if (started != kSuccess) return "CUDA does not start: " + text_of(state.functions, started);
  return {};
}

std::vector<std::string> candidates() {
  if (!environment::cuda_driver().empty()) return {environment::cuda_driver()};
  return {"libcuda.so.1", "/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"};
}

/// After these the context is lost, and with it every later call of the process.
bool is_sticky(Result result) {
  constexpr std::array<Result, 12> kSticky{214, 220, 700, 702, 709, 710,
                                           714, 715, 716, 717, 718, 719};
  return std::find(kSticky.begin(), kSticky.end(), result) != kSticky.end();
}

}   // namespace

DriverState open_driver(const std::vector<std::string>& candidates,
                        const std::string& visible_devices) noexcept {
  DriverState state;
  void* library = nullptr;
  for (const std::string& candidate : candidates) {
    library = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) {
      state.path = candidate;
      break;
    }
    const char* said = dlerror();
    if (state.reason.empty())
      state.reason = std::string("no CUDA driver: ") + (said == nullptr ? candidate : said);
  }
  if (library != nullptr) state.reason = start(library, visible_devices, state);
  return state;   // the library stays open for as long as the process lives
}

const DriverState& driver_state() noexcept {
  // Never destroyed: buffers of static storage give their memory back after it would be.
  static const DriverState& state =
      *new DriverState(open_driver(candidates(), environment::cuda_visible_devices()));
  return state;
}

const Driver& driver() {
  const DriverState& state = driver_state();
  PUMICE_EXPECTS(state.reason.empty(), "CUDA is not available: ", state.reason);
  return state.functions;
}

std::string version_text(int version) {
  return detail::concatenate(version / 1000, '.', version % 1000 / 10);
}

std::string error_text(Result result) {
  return text_of(driver(), result);
}

void raise(Result result, const std::string& what) {
  throw Error(detail::concatenate(
      what, ": ", error_text(result),
      is_sticky(result) ? "; CUDA is lost to this process, which has to end: PUMICE_SYNC=1 shows "
                          "after which launch it happened"
                        : ""));
}

}   // namespace pumice::cuda
