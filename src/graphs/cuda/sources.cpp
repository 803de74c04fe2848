#include "graphs/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> graphs_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "patterns", .text = "#include <pumice/graphs/long_rows.h>\n"}, {"list_long_rows"}},
  };
  return groups;
}

jit::KernelName graphs_kernel(const char* name) {
  return jit::find_kernel(graphs_kernels(), name);
}

}   // namespace pumice::cuda
