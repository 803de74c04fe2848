// Finding a kernel among a dozen or two.
#include "jit/kernel_table.hpp"

#include <pumice/core/error.hpp>

namespace pumice::jit {

KernelName find_kernel(std::span<const KernelGroup> groups, std::string_view name) {
  for (const KernelGroup& group : groups) {
    for (const char* const kernel : group.kernels) {
      if (name == kernel) return {&group.source, kernel};
    }
  }
  PUMICE_ENSURES(false, "no source has a kernel ", name);
}

}   // namespace pumice::jit
