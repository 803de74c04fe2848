// One launch over the rows.
#include "graphs/cuda/long_rows.hpp"

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "graphs/cuda/sources.hpp"

namespace pumice::cuda {

void list_long_rows(jit::KernelRunner& runner, const LongRowsArguments& arguments) {
  fill_bytes_async(arguments.counts, std::byte{0}, 2 * sizeof(std::int32_t), runner.stream());
  runner.run(graphs_kernel("list_long_rows"),
             {.blocks = (arguments.rows + kLongRowsThreads - 1) / kLongRowsThreads,
              .threads = kLongRowsThreads},
             arguments);
}

PatternRef pattern_ref(const CsrView& pattern) {
  PUMICE_ENSURES(pattern.device.kind == DeviceKind::cuda, "a pattern on ",
                 to_string(pattern.device));
  return {.row_begin = pattern.row_begin.data(),
          .column = pattern.column.data(),
          .number = pattern.entry.empty() ? nullptr : pattern.entry.data(),
          .rows = pattern.rows,
          .long_rows = pattern.long_rows};
}

}   // namespace pumice::cuda
