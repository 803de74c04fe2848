#include "graphs/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> graphs_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "patterns",
        .text = "#include <pumice/graphs/balance.h>\n"
                "#include <pumice/graphs/patterns.h>\n"},
       {"balance_rows", "bound_rows", "key_entries", "list_entries", "turn_entries"}},
      {{.name = "edges_in_use", .text = "#include <pumice/graphs/edges_in_use.h>\n"},
       {"copy_edges_in_use"}},
  };
  return groups;
}

jit::KernelName graphs_kernel(const char* name) {
  return jit::find_kernel(graphs_kernels(), name);
}

}   // namespace pumice::cuda
