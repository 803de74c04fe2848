// What <pumice/jit/support.hpp> says about this process.
#include <pumice/jit/support.hpp>

#include "jit/cubin_cache.hpp"
#include "jit/nvrtc.hpp"

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

KernelCache kernel_cache() {
  const jit::CubinCache& cache = jit::process_cache();
  const jit::CubinCache::Use use = cache.use();
  return {.folder = cache.folder(),
          .bytes = use.bytes,
          .kernels = use.kernels,
          .limit_bytes = cache.limit_bytes()};
}

}   // namespace pumice
