// Opening libcuda, and its errors in words.
#include "core/cuda/driver.hpp"

#include <algorithm>
#include <array>

#include <pumice/core/error.hpp>

#include "core/environment.hpp"
#include "core/shared_library.hpp"

namespace pumice::cuda {
namespace {

constexpr const char* kInstall = "; install NVIDIA's driver, or compute on the CPU";

void find_functions(SharedLibrary& library, Driver& functions) {
#define PUMICE_FIND(name, parameters) library.require(#name, functions.name);
  PUMICE_CUDA_DRIVER_FUNCTIONS(PUMICE_FIND)
#undef PUMICE_FIND
#define PUMICE_FIND(name, parameters) library.find(#name, functions.name);
  PUMICE_CUDA_DRIVER_EXTRAS(PUMICE_FIND)
#undef PUMICE_FIND
}

std::string text_of(const Driver& functions, Result result) {
  const char* name = nullptr;
  const char* text = nullptr;
  functions.cuGetErrorName(result, &name);
  functions.cuGetErrorString(result, &text);
  if (name == nullptr || text == nullptr) return "CUDA error " + std::to_string(result);
  return std::string(name) + ": " + text;
}

/// Why CUDA cannot be used; empty when it can.
std::string start(SharedLibrary& library, const std::string& visible_devices, DriverState& state) {
  Result (*get_version)(int*) = nullptr;
  Result (*initialise)(unsigned) = nullptr;
  library.require("cuInit", initialise);
  library.require("cuDriverGetVersion", get_version);
  if (library.missing() != nullptr) return library.problem();
  get_version(&state.version);
  if (state.version < kOldestVersion) {
    return detail::concatenate("the CUDA driver is too old: it serves CUDA ",
                               version_text(state.version), ", Pumice needs ",
                               version_text(kOldestVersion),
                               " (driver 530.30) or later; update it, or compute on the CPU");
  }
  find_functions(library, state.functions);
  if (library.missing() != nullptr) {
    return detail::concatenate(state.path, " has no ", library.missing(),
                               ", though it serves CUDA ", version_text(state.version));
  }
  const Result started = initialise(0);
  if (started == kSuccess) state.functions.cuDeviceGetCount(&state.devices);
  if (started == kNoDevice || (started == kSuccess && state.devices == 0)) {
    std::string reason = detail::concatenate("the CUDA driver (CUDA ", version_text(state.version),
                                             ") sees no device");
    if (!visible_devices.empty())
      reason += "; it is told to show only \"" + visible_devices + "\" (CUDA_VISIBLE_DEVICES)";
    return reason + "; `nvidia-smi -L` lists what there is, without one compute on the CPU";
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
  SharedLibrary library({.name = "CUDA driver", .remedy = kInstall}, candidates);
  state.path = library.candidate();
  state.reason = library.is_open() ? start(library, visible_devices, state) : library.problem();
  return state;
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
