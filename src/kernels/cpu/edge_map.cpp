// EdgeMap on the CPU: the entries of a row at a time, head by head.
#include <pumice/kernels/edge_map.hpp>

#include <cstddef>

#include <pumice/core/error.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {

void edge_dot(const EdgeMapArguments& arguments) {
  const CsrView& pattern = arguments.pattern;
  const std::int64_t channels = arguments.left.extent(1), heads = arguments.output.extent(1);
  PUMICE_ENSURES(heads > 0 && channels % heads == 0, channels, " channels of ", heads, " heads");
  const DType type = arguments.left.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t of_head = channels / heads;
  const auto at = [bytes](const auto& tensor, std::int64_t element) {
    return static_cast<const std::byte*>(tensor.raw()) + element * bytes;
  };
  cpu::for_rows(pattern, channels, [&](std::int64_t row) {
    const std::int64_t begin = pattern.begin_of(row);
    for (std::int64_t head = 0; head < heads; ++head) {
      const std::int64_t from = head * of_head;
      kernels.dot({.column = pattern.column.data() + begin,
                   .number = pattern.entry.empty() ? nullptr : pattern.entry.data() + begin,
                   .first = begin,
                   .entries = pattern.end_of(row) - begin,
                   .values = nullptr,
                   .value_pitch = 0,
                   .features = at(arguments.right, from),
                   .pitch = channels,
                   .channels = of_head},
                  at(arguments.left, row * channels + from),
                  static_cast<std::byte*>(arguments.output.raw()) + head * bytes, heads);
    }
  });
}

}   // namespace pumice
