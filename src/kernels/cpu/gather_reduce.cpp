// GatherReduce on the CPU: a row at a time, head by head.
#include <pumice/kernels/gather_reduce.hpp>

#include <algorithm>
#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {

void gather_reduce(const GatherReduceArguments& arguments, EntryReduction reduction) {
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  PUMICE_ENSURES(picks == arguments.source.defined(), "source is for max and min");
  const DType type = arguments.features.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const cpu::HeadRows rows(arguments.pattern, arguments.features, arguments.values,
                           arguments.values.defined() ? arguments.values.extent(1) : 1);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t channels = arguments.features.extent(1);
  cpu::for_rows(arguments.pattern, channels, [&](std::int64_t row) {
    auto* const output = static_cast<std::byte*>(arguments.output.raw()) + row * channels * bytes;
    std::int64_t* const source =
        picks ? arguments.source.data<std::int64_t>() + row * channels : nullptr;
    const std::int64_t entries = arguments.pattern.end_of(row) - arguments.pattern.begin_of(row);
    if (entries == 0) {
      std::fill_n(output, channels * bytes, std::byte{});
      if (picks) std::fill_n(source, channels, -1);
      return;
    }
    const double scale =
        reduction == EntryReduction::mean ? 1.0 / static_cast<double>(entries) : 1.0;
    for (std::int64_t head = 0; head < rows.heads(); ++head) {
      const std::int64_t from = head * rows.channels();
      if (picks) {
        kernels.most(rows.of(row, head), reduction == EntryReduction::max ? 1 : -1,
                     output + from * bytes, source + from);
      } else {
        kernels.sum(rows.of(row, head), scale, output + from * bytes);
      }
    }
  });
}

}   // namespace pumice
