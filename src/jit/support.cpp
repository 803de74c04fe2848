// What <pumice/jit/support.hpp> says about this process.
#include <pumice/jit/support.hpp>

#include <set>
#include <utility>

#include "jit/bundle_set.hpp"
#include "jit/cubin_cache.hpp"
#include "jit/nvrtc.hpp"
#include "jit/obtain.hpp"

namespace pumice {

const KernelCompiler& kernel_compiler() noexcept {
  static const KernelCompiler& compiler = *new KernelCompiler([] {
    const jit::NvrtcState& state = jit::nvrtc_state();
    KernelCompiler found;
    found.available = state.reason.empty();
    found.reason = state.reason;
    if (!found.available) return found;
    found.version = std::to_string(state.major) + "." + std::to_string(state.minor);
    found.path = state.path;
    return found;
  }());
  return compiler;
}

void suggest_kernel_compiler(std::string path) {
  jit::suggest_nvrtc(std::move(path));
}

void on_kernel_compiled(std::function<void(const CompiledKernel&)> listener) {
  jit::listen(std::move(listener));
}

KernelCache kernel_cache() {
  const jit::CubinCache& cache = jit::process_cache();
  const jit::CubinCache::Use use = cache.use();
  return {.folder = cache.folder(),
          .bytes = use.bytes,
          .kernels = use.kernels,
          .limit_bytes = cache.limit_bytes()};
}

std::vector<KernelBundle> kernel_bundles() {
  std::vector<KernelBundle> found;
  for (const jit::BundleSet::Bundle& bundle : jit::process_bundles().bundles()) {
    KernelBundle& entry = found.emplace_back();
    entry.path = bundle.path;
    entry.problem = bundle.problem;
    if (!bundle.file) continue;
    entry.bytes = static_cast<std::int64_t>(bundle.file->bytes());
    entry.kernels = static_cast<std::int64_t>(bundle.file->kernels().size());
    std::set<std::pair<int, std::string>> architectures;   // sm_90a before sm_100
    std::set<std::pair<int, int>> compilers;
    for (const jit::BundledKernel& kernel : bundle.file->kernels()) {
      architectures.insert({std::stoi(kernel.architecture.substr(3)), kernel.architecture});
      compilers.insert({kernel.compiler.major, kernel.compiler.minor});
    }
    for (const auto& [number, name] : architectures)
      entry.architectures.push_back(name);
    for (const auto& [major, minor] : compilers) {
      entry.compiler += (entry.compiler.empty() ? "" : ", ") + std::to_string(major) + "." +
                        std::to_string(minor);
    }
  }
  return found;
}

}   // namespace pumice
