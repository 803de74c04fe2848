// GatherReduce on the CPU: sums by ranges of rows; choices row by row and head by head.
#include <pumice/kernels/gather_reduce.hpp>

#include <algorithm>
#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {
namespace {

void pick_most(const GatherReduceArguments& arguments, const cpu::HeadRows& rows, double sign) {
  const DType type = arguments.features.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t channels = arguments.features.extent(1);
  const auto pick = [&](std::int64_t row) {
    auto* const output = static_cast<std::byte*>(arguments.output.raw()) + row * channels * bytes;
    std::int64_t* const source = arguments.source.data<std::int64_t>() + row * channels;
    if (arguments.pattern.end_of(row) == arguments.pattern.begin_of(row)) {
      std::fill_n(output, channels * bytes, std::byte{});
      std::fill_n(source, channels, -1);
      return;
    }
    for (std::int64_t head = 0; head < rows.heads(); ++head) {
      const std::int64_t from = head * rows.channels();
      kernels.most(rows.of(row, head), sign, output + from * bytes, source + from);
    }
  };
  cpu::for_rows(arguments.pattern, channels, pick, arguments.schedule.work);
}

}   // namespace

void gather_reduce(const GatherReduceArguments& arguments, EntryReduction reduction) {
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  PUMICE_ENSURES(picks == arguments.source.defined(), "source is for max and min");
  const cpu::HeadRows rows(arguments.pattern, arguments.features, arguments.values,
                           arguments.values.defined() ? arguments.values.extent(1) : 1,
                           arguments.schedule.ahead);
  if (picks) return pick_most(arguments, rows, reduction == EntryReduction::max ? 1 : -1);
  const cpu::EntryKernels& kernels = cpu::entry_kernels(arguments.features.dtype());
  cpu::for_row_ranges(
      arguments.pattern, arguments.features.extent(1),
      [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t head = 0; head < rows.heads(); ++head) {
          kernels.sum_rows(rows.all(head), arguments.pattern.row_begin.data(), first, last,
                           reduction == EntryReduction::mean,
                           cpu::element_at(arguments.output, head * rows.channels()),
                           {cpu::element_at(arguments.added.shift, head * rows.channels()),
                            cpu::element_at(arguments.added.residual, head * rows.channels())});
        }
      },
      arguments.schedule.work);
}

}   // namespace pumice
