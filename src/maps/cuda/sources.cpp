// Kernels that are used together are compiled together.
#include "maps/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> maps_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "tile maps",
        .text = "#include <pumice/maps/gray_order.h>\n"
                "#include <pumice/maps/match.h>\n"
                "#include <pumice/maps/tiles.h>\n"},
       {"fill_tiles", "gray_keys_u32", "gray_keys_u64", "mask_tiles", "match_blocks",
        "match_children", "match_parities", "match_rows", "plan_tiles"}},
      {{.name = "pair tiles", .text = "#include <pumice/maps/pair_tiles.h>\n"},
       {"fill_pair_tiles", "index_pairs", "plan_pair_tiles"}},
      {{.name = "pair lists",
        .text = "#include <pumice/maps/identity_pairs.h>\n"
                "#include <pumice/maps/pair_lists.h>\n"},
       {"count_pairs", "identity_pairs", "sum_pairs", "write_pairs"}},
      {{.name = "reached sites", .text = "#include <pumice/maps/reach.h>\n"},
       {"mark_reached", "mark_reached_by_parity"}},
  };
  return groups;
}

jit::KernelName maps_kernel(const char* name) {
  return jit::find_kernel(maps_kernels(), name);
}

}   // namespace pumice::cuda
