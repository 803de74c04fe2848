// Kernels that are used together are compiled together.
#include "formats/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> formats_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "tile maps",
        .text = "#include <pumice/formats/gray_order.h>\n"
                "#include <pumice/formats/tiles.h>\n"},
       {"cut_tiles", "gray_keys_u32", "gray_keys_u64", "write_tiles"}},
      {{.name = "pair tiles", .text = "#include <pumice/formats/pair_tiles.h>\n"},
       {"fill_pair_tiles", "index_pairs", "plan_pair_tiles"}},
      {{.name = "pair lists",
        .text = "#include <pumice/formats/identity_pairs.h>\n"
                "#include <pumice/formats/pair_lists.h>\n"},
       {"count_pairs", "identity_pairs", "list_pairs"}},
      {{.name = "part cuts", .text = "#include <pumice/formats/part_cut.h>\n"},
       {"bound_cut", "bound_lists", "bucket_entries", "check_given", "count_slots", "fill_lines",
        "fill_slots", "key_blocks", "key_lines", "key_shares", "list_places", "list_rows",
        "list_runs", "measure_rows", "size_runs"}},
      {{.name = "part tables",
        .text = "#include <pumice/formats/part_table.h>\n"
                "#include <pumice/grid/scan.h>\n"},
       {"bound_parts", "count_pieces", "list_bare_rows", "list_pieces", "scan_counts",
        "share_rows"}},
  };
  return groups;
}

jit::KernelName formats_kernel(const char* name) {
  return jit::find_kernel(formats_kernels(), name);
}

}   // namespace pumice::cuda
