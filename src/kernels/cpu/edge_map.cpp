// EdgeMap on the CPU: the entries of a row at a time, head by head.
#include <pumice/kernels/edge_map.hpp>

#include <cstddef>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {

void edge_dot(const EdgeMapArguments& arguments) {
  const DType type = arguments.left.dtype();
  const cpu::EntryKernels& kernels = cpu::entry_kernels(type);
  const cpu::HeadRows rows(arguments.pattern, arguments.right, {}, arguments.output.extent(1));
  const auto bytes = static_cast<std::int64_t>(size_of(type));
  const std::int64_t channels = arguments.left.extent(1);
  const auto* const left = static_cast<const std::byte*>(arguments.left.raw());
  auto* const output = static_cast<std::byte*>(arguments.output.raw());
  cpu::for_rows(arguments.pattern, channels, [&](std::int64_t row) {
    for (std::int64_t head = 0; head < rows.heads(); ++head)
      kernels.dot(rows.of(row, head), left + (row * channels + head * rows.channels()) * bytes,
                  output + head * bytes, rows.heads());
  });
}

}   // namespace pumice
