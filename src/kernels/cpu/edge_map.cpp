// EdgeMap on the CPU: the entries of a row at a time, head by head.
#include <pumice/kernels/edge_map.hpp>

#include "kernels/cpu/entry_rows.hpp"
#include "kernels/cpu/leaky_rows.hpp"
#include "kernels/cpu/row_ranges.hpp"

namespace pumice {

void edge_map(const EdgeMapArguments& arguments) {
  const cpu::EntryKernels& kernels = cpu::entry_kernels(arguments.left.dtype());
  const cpu::LeakyKernels& scores = cpu::leaky_kernels(arguments.left.dtype());
  const cpu::HeadRows rows(arguments.pattern, arguments.right, {}, arguments.output.extent(1),
                           arguments.schedule.ahead);
  const std::int64_t channels = arguments.left.extent(1);
  const auto map = [&](std::int64_t row) {
    for (std::int64_t head = 0; head < rows.heads(); ++head) {
      const std::int64_t from = head * rows.channels();
      const void* const left = cpu::element_at(arguments.left, row * channels + from);
      void* const output = cpu::element_at(arguments.output, head);
      if (!arguments.attention.defined()) {
        kernels.dot(rows.of(row, head), left, output, rows.heads());
      } else {
        scores.score(rows.of(row, head),
                     {.own = left,
                      .attention = cpu::element_at(arguments.attention, from),
                      .entry = cpu::element_at(arguments.entry, from),
                      .slope = arguments.negative_slope},
                     output, rows.heads());
      }
    }
  };
  cpu::for_rows(arguments.pattern, channels, map, arguments.schedule.work);
}

}   // namespace pumice
