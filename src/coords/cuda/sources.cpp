// Small kernels compile faster together than apart, so those that are used together are.
#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> coords_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "coordinate sets",
        .text = "#include <pumice/coords/decode.h>\n"
                "#include <pumice/coords/encode.h>\n"
                "#include <pumice/coords/levels.h>\n"
                "#include <pumice/grid/fill.h>\n"
                "#include <pumice/grid/gather.h>\n"
                "#include <pumice/grid/radix_sort.h>\n"
                "#include <pumice/grid/upload.h>\n"},
       {"begin_batches", "build_blocks", "decode_coordinates", "encode_coordinates", "fill_ranges",
        "gather_words", "sort_count_u32", "sort_count_u64", "sort_scatter_u32", "sort_scatter_u64",
        "sort_small_u32", "sort_small_u64", "write_cells", "write_words"}},
      {{.name = "operations on coordinate sets",
        .text = "#include <pumice/coords/block_set.h>\n"
                "#include <pumice/coords/prune.h>\n"
                "#include <pumice/coords/rekey.h>\n"
                "#include <pumice/coords/reorder.h>\n"},
       {"check_order", "count_kept", "rekey_sets", "sum_kept", "write_block_cells",
        "write_kept_ranks", "write_kept_rows"}},
      {{.name = "voxelisation", .text = "#include <pumice/coords/voxelize.h>\n"},
       {"quantise_points", "reduce_points"}},
  };
  return groups;
}

jit::KernelName coords_kernel(const char* name) {
  return jit::find_kernel(coords_kernels(), name);
}

}   // namespace pumice::cuda
