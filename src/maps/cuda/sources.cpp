// Kernels that are used together are compiled together.
#include "maps/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> maps_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "searched maps", .text = "#include <pumice/maps/match.h>\n"}, {"match_maps"}},
      {{.name = "reached sites", .text = "#include <pumice/maps/reach.h>\n"},
       {"mark_reached", "mark_reached_by_parity"}},
  };
  return groups;
}

jit::KernelName maps_kernel(const char* name) {
  return jit::find_kernel(maps_kernels(), name);
}

}   // namespace pumice::cuda
