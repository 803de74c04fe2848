// One launch over rows and units.
#include "graphs/cuda/balance.hpp"

#include <algorithm>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "graphs/cuda/sources.hpp"

namespace pumice::cuda {

void add_balance(PatternLists& lists, std::int64_t rows, StreamView stream, std::int64_t longest) {
  if (rows == 0) return;
  const std::int64_t entries = lists.column.size(), units = work_units(rows, entries);
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  lists.unit_row = runner.make<std::int32_t>(units + 1);
  BalanceArguments arguments{.row_begin = lists.row_begin.data(),
                             .rows = rows,
                             .unit_row = lists.unit_row.data(),
                             .units = units,
                             .part_entries = part_entries(entries)};
  const std::int64_t tiles = (rows + kBalanceThreads - 1) / kBalanceThreads;
  Buffer<std::uint64_t> states;   // and the ticket
  const bool may_be_long = longest == kUnknownLength || longest > arguments.part_entries;
  if (may_be_long && most_long_rows(entries) > 0) {
    lists.part = runner.make<RowPart>(most_row_parts(entries));
    lists.long_row = runner.make<LongRow>(most_long_rows(entries));
    lists.long_counts = runner.make<std::int32_t>(2);
    arguments.part = lists.part.data();
    arguments.row = lists.long_row.data();
    arguments.counts = lists.long_counts.data();
    states = runner.make<std::uint64_t>(tiles + 1);
    fill_bytes_async(states.data(), std::byte{0}, states.bytes(), stream);
    lists.arrived =
        runner.make<std::uint32_t>(kArrivalSets * kArrivalTiles * most_row_parts(entries));
    fill_bytes_async(lists.arrived.data(), std::byte{0}, lists.arrived.bytes(), stream);
    arguments.states = states.data();
    arguments.ticket = reinterpret_cast<std::uint32_t*>(states.data() + tiles);
  }
  const std::int64_t items = std::max(rows, units + 1);
  runner.run(
      graphs_kernel("balance_rows"),
      {.blocks = (items + kBalanceThreads - 1) / kBalanceThreads, .threads = kBalanceThreads},
      arguments);
}

PatternRef pattern_ref(const CsrView& pattern) {
  PUMICE_ENSURES(pattern.device.kind == DeviceKind::cuda, "a pattern on ",
                 to_string(pattern.device));
  const bool has_units = !pattern.unit_row.empty();
  return {.row_begin = pattern.row_begin.data(),
          .column = pattern.column.data(),
          .number = pattern.entry.empty() ? nullptr : pattern.entry.data(),
          .rows = pattern.rows,
          .entries = pattern.entries(),
          .long_rows = pattern.long_rows,
          .unit_row = has_units ? pattern.unit_row.data() : nullptr,
          .units = has_units ? static_cast<std::int64_t>(pattern.unit_row.size()) - 1 : 0};
}

}   // namespace pumice::cuda
