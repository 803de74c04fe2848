#include "graphs/cuda/patterns.hpp"

#include <bit>
#include <string>

#include <pumice/graphs/patterns_arguments.h>
#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>

#include "coords/cuda/radix_sort.hpp"
#include "core/cuda/status.hpp"
#include "graphs/cuda/balance.hpp"
#include "graphs/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

jit::LaunchShape thread_each(std::int64_t items) {
  return {.blocks = (items + kPatternThreads - 1) / kPatternThreads, .threads = kPatternThreads};
}

NumberList numbers_of(jit::KernelRunner& runner, ConstTensorView list, std::int64_t limit,
                      const char* op, const char* name) {
  return {.number = list.raw(),
          .limit = limit,
          .status = runner.status(),
          .site = status_site(std::string(op) + ": " + name),
          .is_wide = list.dtype() == DType::i64};
}

using Sort = RadixSort<std::uint32_t>;

/// Of keys below `limit`.
SortRoom room_for(std::int64_t entries, std::int64_t limit) {
  return {entries, static_cast<int>(std::bit_width(static_cast<std::uint64_t>(limit)))};
}

/// What is in `sort` becomes rows; `list` enqueues what lists their entries by the sorted places.
template <class List>
PatternLists listed(jit::KernelRunner& runner, Sort& sort, std::int64_t rows, std::int64_t entries,
                    List&& list) {
  PatternLists made{.row_begin = runner.make<std::int64_t>(rows + 1),
                    .column = runner.make<std::int32_t>(entries),
                    .entry = runner.make<std::int64_t>(entries)};
  if (entries == 0) {
    fill_bytes_async(made.row_begin.data(), std::byte{0}, made.row_begin.bytes(), runner.stream());
    add_balance(made, rows, runner.stream());
    return made;
  }
  sort.run(runner, {nullptr, entries});
  list(made);
  runner.run(graphs_kernel("bound_rows"), thread_each(rows + 1),
             BoundRowArguments{.sorted_key = sort.sorted_keys(),
                               .entries = entries,
                               .rows = rows,
                               .row_begin = made.row_begin.data()});
  add_balance(made, rows, runner.stream());
  return made;
}

}   // namespace

PatternLists group_entries(std::int64_t rows, std::int64_t columns, ConstTensorView row,
                           ConstTensorView column, const EntryNames& names) {
  jit::DeviceRunner runner(row.stream(), default_allocator(row.device()));
  const std::int64_t entries = row.rows();
  FillList fill;
  Sort sort(runner, room_for(entries, rows), fill);
  fill.run(runner);
  runner.run(graphs_kernel("key_entries"), thread_each(entries),
             EntryKeyArguments{.row = numbers_of(runner, row, rows, names.op, names.row),
                               .entries = entries,
                               .key = sort.keys()});
  return listed(runner, sort, rows, entries, [&](PatternLists& made) {
    runner.run(
        graphs_kernel("list_entries"), thread_each(entries),
        ListEntryArguments{.column = numbers_of(runner, column, columns, names.op, names.column),
                           .sorted = sort.sorted_values(),
                           .entries = entries,
                           .column_of = made.column.data(),
                           .number_of = made.entry.data()});
  });
}

PatternLists transposed(const CsrView& pattern, StreamView stream) {
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  const std::int64_t entries = pattern.entries();
  FillList fill;
  Sort sort(runner, room_for(entries, pattern.columns), fill);
  fill.run(runner);
  copy_async(sort.keys(), stream.device, pattern.column.data(), stream.device,
             pattern.column.size_bytes(), stream);
  return listed(runner, sort, pattern.columns, entries, [&](PatternLists& made) {
    runner.run(graphs_kernel("turn_entries"), thread_each(entries),
               TurnEntryArguments{.pattern = pattern_ref(pattern),
                                  .sorted = sort.sorted_values(),
                                  .entries = entries,
                                  .column_of = made.column.data(),
                                  .number_of = made.entry.data()});
  });
}

}   // namespace pumice::cuda
