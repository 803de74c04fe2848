// Products over parts: a row at a time, head by head, with the loops of whole patterns.
#include <pumice/kernels/part_products.hpp>

#include <algorithm>
#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/part_rows.hpp"

namespace pumice {
namespace {

/// A row without entries, whose loops go over the channels of the first head.
cpu::EntryRow over_channels(ConstTensorView features, ConstTensorView values, std::int64_t heads,
                            std::int64_t ahead) {
  PUMICE_ENSURES(heads > 0 && features.extent(1) % heads == 0, features.extent(1), " channels of ",
                 heads, " heads");
  return {.column = nullptr,
          .number = nullptr,
          .first = 0,
          .entries = 0,
          .listed = 0,
          .ahead = ahead,
          .values = values.defined() ? values.raw() : nullptr,
          .value_pitch = heads,
          .features = features.raw(),
          .pitch = features.extent(1),
          .channels = features.extent(1) / heads};
}

/// The same row for the head after it.
void to_next_head(cpu::EntryRow& row, std::int64_t bytes) {
  row.features = static_cast<const std::byte*>(row.features) + row.channels * bytes;
  if (row.values != nullptr) row.values = static_cast<const std::byte*>(row.values) + bytes;
}

}   // namespace

void gather_reduce(const PartReduceArguments& arguments, EntryReduction reduction) {
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  PUMICE_ENSURES(picks == arguments.source.defined(), "source is for max and min");
  const DType type = arguments.features.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const std::int64_t heads = arguments.values.defined() ? arguments.values.extent(1) : 1;
  const cpu::EntryRow like =
      over_channels(arguments.features, arguments.values, heads, arguments.schedule.ahead);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t channels = arguments.features.extent(1);
  cpu::for_part_rows(
      arguments.parts, channels, arguments.schedule.work, picks,
      [&](std::int64_t row, cpu::PartRows& rows) {
        auto* output = static_cast<std::byte*>(arguments.output.raw()) + row * channels * bytes;
        std::int64_t* source =
            picks ? arguments.source.data<std::int64_t>() + row * channels : nullptr;
        cpu::EntryRow found = like;
        rows.find(row, found);
        if (found.entries == 0) {
          std::fill_n(output, channels * bytes, std::byte{});
          if (picks) std::fill_n(source, channels, -1);
          return;
        }
        const std::int64_t begin[] = {0, found.entries};
        for (std::int64_t head = 0; head < heads; ++head) {
          if (picks) {
            kernels.most(found, reduction == EntryReduction::max ? 1 : -1, output, source);
            source += found.channels;
          } else {
            kernels.sum_rows(found, begin, 0, 1, reduction == EntryReduction::mean, output, {});
          }
          output += found.channels * bytes;
          to_next_head(found, bytes);
        }
      });
}

void edge_dot(const PartDotArguments& arguments) {
  const DType type = arguments.left.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const std::int64_t heads = arguments.output.extent(1);
  const cpu::EntryRow like = over_channels(arguments.right, {}, heads, arguments.schedule.ahead);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t channels = arguments.left.extent(1);
  cpu::for_part_rows(arguments.parts, channels, arguments.schedule.work, false,
                     [&](std::int64_t row, cpu::PartRows& rows) {
                       const auto* left = static_cast<const std::byte*>(arguments.left.raw()) +
                                          row * channels * bytes;
                       auto* output = static_cast<std::byte*>(arguments.output.raw());
                       cpu::EntryRow found = like;
                       rows.find(row, found);
                       for (std::int64_t head = 0; head < heads; ++head) {
                         kernels.dot(found, left, output, heads);
                         left += found.channels * bytes;
                         output += bytes;
                         to_next_head(found, bytes);
                       }
                     });
}

}   // namespace pumice
