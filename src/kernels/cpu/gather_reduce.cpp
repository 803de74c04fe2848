// GatherReduce on the CPU: a row at a time, head by head.
#include <pumice/kernels/gather_reduce.hpp>

#include <algorithm>
#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {

void gather_reduce(const GatherReduceArguments& arguments, EntryReduction reduction) {
  const CsrView& pattern = arguments.pattern;
  const std::int64_t channels = arguments.features.extent(1);
  const std::int64_t heads = arguments.values.defined() ? arguments.values.extent(1) : 1;
  PUMICE_ENSURES(heads > 0 && channels % heads == 0, channels, " channels of ", heads, " heads");
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  PUMICE_ENSURES(picks == arguments.source.defined(), "source is for max and min");
  const DType type = arguments.features.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t of_head = channels / heads;
  const auto at = [bytes](const auto& tensor, std::int64_t element) {
    return static_cast<const std::byte*>(tensor.raw()) + element * bytes;
  };
  cpu::for_rows(pattern, channels, [&](std::int64_t row) {
    const std::int64_t begin = pattern.begin_of(row), entries = pattern.end_of(row) - begin;
    auto* const output = static_cast<std::byte*>(arguments.output.raw()) + row * channels * bytes;
    std::int64_t* const source =
        picks ? arguments.source.data<std::int64_t>() + row * channels : nullptr;
    if (entries == 0) {
      std::fill_n(output, channels * bytes, std::byte{});
      if (picks) std::fill_n(source, channels, -1);
      return;
    }
    const double scale =
        reduction == EntryReduction::mean ? 1.0 / static_cast<double>(entries) : 1.0;
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t from = head * of_head;
      const cpu::EntryRow of_row{
          .column = pattern.column.data() + begin,
          .number = pattern.entry.empty() ? nullptr : pattern.entry.data() + begin,
          .first = begin,
          .entries = entries,
          .values = arguments.values.defined() ? at(arguments.values, head) : nullptr,
          .value_pitch = heads,
          .features = at(arguments.features, from),
          .pitch = channels,
          .channels = of_head};
      if (picks) {
        kernels.most(of_row, reduction == EntryReduction::max ? 1 : -1, output + from * bytes,
                     source + from);
      } else {
        kernels.sum(of_row, scale, output + from * bytes);
      }
    }
  });
}

}   // namespace pumice
