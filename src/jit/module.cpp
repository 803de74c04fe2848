// The process's registry of loaded modules.
#include "jit/module.hpp"

#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cuda/context.hpp"
#include "jit/dependent_launch.hpp"
#include "jit/nvrtc.hpp"
#include "jit/obtain.hpp"

namespace pumice::jit {

struct Module::State {
  std::string name;
  cuda::LibraryHandle library = nullptr;
  detail::LaunchTraits traits;   // of its kernels
  std::vector<KernelReport> reports;
  std::mutex mutex;
  std::map<std::string, std::unique_ptr<detail::LoadedKernel>, std::less<>> kernels;
};

Module::~Module() {
  delete state_;
}

Kernel Module::kernel(std::string_view name) const {
  const std::lock_guard lock(state_->mutex);
  auto found = state_->kernels.find(name);
  if (found == state_->kernels.end()) {
    const std::string text(name);
    const cuda::RelaxedCapture relaxed;
    cuda::KernelHandle handle = nullptr;
    const cuda::Result result =
        cuda::driver().cuLibraryGetKernel(&handle, state_->library, text.c_str());
    if (result == cuda::kNotFound) {
      std::string known;
      for (const KernelReport& report : state_->reports)
        known += (known.empty() ? "" : ", ") + report.name;
      PUMICE_ENSURES(false, state_->name, " has no kernel ", text, "; it has ", known);
    }
    cuda::check(result, text.c_str());
    auto loaded = std::make_unique<detail::LoadedKernel>(text, handle, state_->traits);
    found = state_->kernels.emplace(text, std::move(loaded)).first;
  }
  return Kernel(*found->second);
}

const std::vector<KernelReport>& Module::reports() const {
  return state_->reports;
}

namespace {

struct Entry {
  std::mutex mutex;   // held while the source is compiled and loaded
  std::unique_ptr<const Module> module;
};

/// Its entry for a source: by the whole text, so that no call that finds it computes a digest.
Entry& entry_of(const std::string& architecture, const Source& source) {
  static auto& mutex = *new std::mutex;   // never destroyed, as the modules
  static auto& entries = *new std::unordered_map<std::string, std::unique_ptr<Entry>>;
  std::string key = architecture;
  key.append(1, source.waits ? 'w' : ' ');
  key.append(1, source.writes_only_features ? 'f' : ' ');
  for (const std::string& option : source.options)
    key.append(1, '\0').append(option);
  key.append(2, '\0').append(source.text);
  const std::lock_guard lock(mutex);
  std::unique_ptr<Entry>& entry = entries[std::move(key)];
  if (entry == nullptr) entry = std::make_unique<Entry>();
  return *entry;
}

cuda::Result load_library(cuda::LibraryHandle* library, const Obtained& obtained) {
  return cuda::driver().cuLibraryLoadData(library, obtained.result.cubin.data(), nullptr, nullptr,
                                          0, nullptr, nullptr, 0);
}

void say_refused(const Source& source, cuda::Result result, const char* what_next) {
  log(LogTopic::kernel, source.name + " is not loaded by the driver (" + cuda::error_text(result) +
                            ") and " + what_next);
}

/// Loads what `obtain` found. What the driver refuses, since it comes from a compiler that is newer
/// than the driver, is looked for further on: behind the bundles, and behind the cache.
Obtained obtain_and_load(const Source& source, const std::string& architecture,
                         cuda::LibraryHandle* library) {
  Obtained obtained = obtain(source, architecture, process_cache(), process_bundles());
  cuda::Result result = load_library(library, obtained);
  if (result != cuda::kSuccess && obtained.origin == Origin::bundle) {
    say_refused(source, result, "looked for in the cache");
    obtained = obtain(source, architecture, process_cache(), BundleSet());
    result = load_library(library, obtained);
  }
  if (result != cuda::kSuccess && obtained.origin == Origin::cache) {
    say_refused(source, result, "compiled anew");
    obtained = obtain_anew(source, architecture, process_cache());
    result = load_library(library, obtained);
  }
  if (result != cuda::kSuccess) {
    const NvrtcState& compiler = nvrtc_state();
    cuda::raise(result,
                pumice::detail::concatenate(source.name, ", compiled for ", architecture,
                                            " by NVRTC ", compiler.major, '.', compiler.minor,
                                            ", does not load in a driver of CUDA ",
                                            cuda::version_text(cuda::driver_state().version)));
  }
  return obtained;
}

}   // namespace

const std::string& architecture_of(Device device) {
  static const auto& all = *new std::vector<std::string>([] {
    std::vector<std::string> names;
    for (int index = 0; index < cuda_support().devices; ++index) {
      const CudaDeviceInfo& info = cuda_device_info(index);
      // Warp-group instructions need the architecture's own features, which sm_90 leaves out.
      const char* suffix = info.major == 9 && info.minor == 0 ? "a" : "";
      names.push_back(pumice::detail::concatenate("sm_", info.major, info.minor, suffix));
    }
    return names;
  }());
  (void)cuda_device_info(device.index);   // refuses what is not there
  return all[static_cast<std::size_t>(device.index)];
}

const Module& load(Device device, const Source& source) {
  PUMICE_ENSURES(device.kind == DeviceKind::cuda, source.name, " loaded for ", to_string(device));
  const std::string& architecture = architecture_of(device);
  Entry& entry = entry_of(architecture, source);
  const std::lock_guard lock(entry.mutex);
  if (entry.module == nullptr) {
    const cuda::ContextGuard guard(device);
    const cuda::RelaxedCapture relaxed;
    auto state = std::make_unique<Module::State>();
    state->name = source.name;
    state->traits = {.waits = waits_by_itself(source, architecture),
                     .writes_only_features = source.writes_only_features};
    state->reports = obtain_and_load(source, architecture, &state->library).result.kernels;
    entry.module.reset(new Module(state.release()));
  }
  return *entry.module;
}

}   // namespace pumice::jit
