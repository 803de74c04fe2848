#include "graphs/cpu/patterns.hpp"

#include <algorithm>
#include <utility>

#include <pumice/core/parallel.hpp>

#include "core/row_groups.hpp"
#include "graphs/entry_numbers.hpp"

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 15;   // entries a task

/// An entry's number is its place in most files, which list them row by row.
bool are_places(std::span<const std::int64_t> numbers) {
  for (std::size_t place = 0; place < numbers.size(); ++place)
    if (numbers[place] != static_cast<std::int64_t>(place)) return false;
  return true;
}

}   // namespace

PatternLists group_entries(std::int64_t rows, std::int64_t columns, ConstTensorView row,
                           ConstTensorView column, const EntryNames& names) {
  PatternLists made;
  with_numbers(row, [&](auto rows_of) {
    check_numbers(rows_of, rows, names.op, names.row);
    RowGroups groups = group_rows(rows_of, rows);
    made.row_begin = std::move(groups.begin);
    made.entry = std::move(groups.position);
  });
  made.column = Buffer<std::int32_t>(made.entry.size());
  with_numbers(column, [&](auto columns_of) {
    check_numbers(columns_of, columns, names.op, names.column);
    parallel_for(made.entry.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place)
        made.column[place] =
            static_cast<std::int32_t>(columns_of[static_cast<std::size_t>(made.entry[place])]);
    });
  });
  if (are_places(made.entry.span())) made.entry = {};
  return made;
}

PatternLists transposed(const CsrView& pattern) {
  Buffer<std::int32_t> row_of(pattern.entries());
  parallel_for(pattern.rows, kChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      std::fill(row_of.data() + pattern.begin_of(row), row_of.data() + pattern.end_of(row),
                static_cast<std::int32_t>(row));
  });
  RowGroups groups = group_rows(pattern.column, pattern.columns);
  PatternLists made;
  made.row_begin = std::move(groups.begin);
  made.column = Buffer<std::int32_t>(pattern.entries());
  made.entry = std::move(groups.position);   // places, which become numbers
  parallel_for(pattern.entries(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t to = begin; to < end; ++to) {
      const std::int64_t place = made.entry[to];
      made.column[to] = row_of[place];
      made.entry[to] = pattern.number_of(place);
    }
  });
  return made;
}

}   // namespace pumice::cpu
