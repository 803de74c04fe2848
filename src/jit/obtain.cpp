// Bundles, cache, compiler: in this order.
#include "jit/obtain.hpp"

#include <array>
#include <charconv>
#include <limits>
#include <memory>
#include <mutex>
#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cuda/driver.hpp"
#include "core/printable.hpp"
#include "jit/nvrtc.hpp"

namespace pumice::jit {
namespace {

void say(const Source& source, std::string_view architecture, const std::string& what) {
  if (logging(LogTopic::kernel))
    log(LogTopic::kernel, detail::concatenate(source.name, " for ", architecture, ": ", what));
}

std::string spills_of(const CompileResult& result) {
  std::string text;
  for (const KernelReport& kernel : result.kernels) {
    if (kernel.spill_store_bytes + kernel.spill_load_bytes == 0) continue;
    text += detail::concatenate("; ", kernel.name, " spills ", kernel.spill_store_bytes, " bytes");
  }
  return text;
}

/// Compilers up to this one make what the driver loads; any, where there is no driver to ask.
int newest_compiler() {
  const int driver = cuda::driver_state().version;
  return driver == 0 ? std::numeric_limits<int>::max() : driver / 1000;
}

/// Which bundles a kernel was not found in, for a message.
std::string searched(const BundleSet& bundles) {
  std::string text;
  for (const BundleSet::Bundle& bundle : bundles.bundles()) {
    if (bundle.file) text += (text.empty() ? "" : ", ") + printable_path(bundle.path);
  }
  return text.empty() ? "there is no bundle of kernels" : "it is not in " + text;
}

using Listen = std::function<void(const CompiledKernel&)>;

/// Called outside its mutex: a listener may wait for a lock of its own, as Python's.
struct Listener {
  std::mutex mutex;
  std::shared_ptr<const Listen> call;
};

Listener& listener() {
  static auto& one = *new Listener;
  return one;
}

std::shared_ptr<const Listen> current_listener() {
  const std::lock_guard lock(listener().mutex);
  return listener().call;
}

}   // namespace

void listen(std::function<void(const CompiledKernel&)> call) {
  auto shared = call ? std::make_shared<const Listen>(std::move(call)) : nullptr;
  const std::lock_guard lock(listener().mutex);
  listener().call = std::move(shared);
}

std::vector<std::string> compatible_architectures(std::string_view architecture) {
  std::vector<std::string> names{std::string(architecture)};
  int number = 0;
  const char* const end = architecture.data() + architecture.size();
  const auto [stop, error] = std::from_chars(architecture.data() + 3, end, number);
  if (error != std::errc() || stop != end) return names;   // sm_90a runs what is for it alone
  constexpr std::array kGenerations{120, 100, 89, 86, 80};
  for (const int known : kGenerations) {
    if (known < number && known / 10 == number / 10) names.push_back("sm_" + std::to_string(known));
  }
  return names;
}

Obtained obtain(const Source& source, std::string_view architecture, const CubinCache& cache,
                const BundleSet& bundles) {
  if (!bundles.bundles().empty()) {
    for (const std::string& name : compatible_architectures(architecture)) {
      auto found = bundles.find(source_digest(source, name), newest_compiler());
      if (!found) continue;
      say(source, name, "in the bundle " + found->path.string());
      return {std::move(found->result), Origin::bundle};
    }
  }
  const NvrtcState& compiler = nvrtc_state();
  PUMICE_EXPECTS(compiler.reason.empty(), source.name, " for ", architecture, ": ",
                 searched(bundles), ", and it cannot be compiled here: ", compiler.reason);
  const Digest key = cache_key(source_digest(source, architecture), compiler.major, compiler.minor);
  if (auto found = cache.find(key)) {
    say(source, architecture, "in the cache, " + cache.path_of(key).string());
    return {std::move(*found), Origin::cache};
  }
  return obtain_anew(source, architecture, cache);
}

Obtained obtain_anew(const Source& source, std::string_view architecture, const CubinCache& cache) {
  CompileResult result = compile(source, architecture);
  const NvrtcState& compiler = nvrtc_state();
  const Digest key = cache_key(source_digest(source, architecture), compiler.major, compiler.minor);
  say(source, architecture,
      detail::concatenate("compiled in ", result.milliseconds, " ms", spills_of(result), ", to ",
                          cache.path_of(key).string()));
  cache.store(key, result);
  if (const auto call = current_listener())
    (*call)({source.name, std::string(architecture), result.milliseconds});
  return {std::move(result), Origin::compiler};
}

}   // namespace pumice::jit
