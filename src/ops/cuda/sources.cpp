// Small kernels that are used together are compiled together, which takes less time than apart.
#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

std::span<const jit::KernelGroup> ops_kernels() {
  static const std::vector<jit::KernelGroup> groups = {
      {{.name = "features",
        .text = "#include <pumice/ops/columns.h>\n"
                "#include <pumice/ops/elementwise.h>\n"
                "#include <pumice/ops/permute.h>\n"},
       {"activate_elements", "affine_elements", "combine_elements", "convert_elements",
        "copy_columns", "fold_norms", "permute_axes"}},
      // Those over columns take seconds, whose bodies stand there for each type.
      {{.name = "column moments", .text = "#include <pumice/ops/column_moments.h>\n"},
       {"column_moments"}},
      {{.name = "column sums", .text = "#include <pumice/ops/column_sums.h>\n"},
       {"column_sums", "finish_norm_gradient", "finish_sums"}},
      {{.name = "norms", .text = "#include <pumice/ops/normalize.h>\n"},
       {"invert_deviations", "normalize_gradient", "normalize_rows"}},
      {{.name = "layer norm", .text = "#include <pumice/ops/layer_norm.h>\n"}, {"layer_norm_rows"}},
      {{.name = "attention", .text = "#include <pumice/ops/edge_softmax.h>\n"},
       {"edge_softmax", "edge_softmax_gradient", "edge_softmax_gradient_long", "edge_softmax_long",
        "sum_entries", "sum_entries_long"}},
      {{.name = "items",
        .text = "#include <pumice/ops/column_max.h>\n"
                "#include <pumice/ops/spread.h>\n"},
       {"column_maxima", "finish_maxima", "scatter_chosen", "spread_items"}},
      {{.name = "pooling", .text = "#include <pumice/ops/pooling.h>\n"},
       {"count_inputs", "pool_tiles"}},
      {{.name = "rows", .text = "#include <pumice/ops/rows.h>\n"},
       {"clear_tail", "invert_rows", "take_rows"}},
      {{.name = "losses", .text = "#include <pumice/ops/cross_entropy.h>\n"},
       {"cross_entropy_gradient", "cross_entropy_rows", "finish_cross_entropy"}},
      {{.name = "occupied cells", .text = "#include <pumice/ops/occupied.h>\n"},
       {"mark_occupied", "sum_occupied", "write_occupied"}},
      {{.name = "row groups",
        .text = "#include <pumice/ops/dense.h>\n"
                "#include <pumice/ops/interpolate.h>\n"
                "#include <pumice/ops/row_groups.h>\n"},
       {"bound_groups", "find_corners", "first_of_groups", "interpolate_points", "key_rows",
        "move_dense_rows", "reduce_groups", "reduced_gradient", "report_outside"}},
  };
  return groups;
}

jit::KernelName ops_kernel(const char* name) {
  return jit::find_kernel(ops_kernels(), name);
}

ElementType element_type(DType type, const char* op, const char* argument) {
  switch (type) {
    case DType::f32: return ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: break;
  }
  detail::raise_user(op, ": ", argument, " holds ", name_of(type),
                     ", which CUDA kernels do not compute in; use f32, f16 or bf16, or the CPU");
}

std::int32_t widest_access(std::int64_t bytes) {
  return bytes % 2 == 0 ? widest_copy(bytes) : 1;
}

jit::DeviceRunner runner_for(const ConstTensorView& tensor) {
  return {tensor.stream(), default_allocator(tensor.device())};
}

}   // namespace pumice::cuda
