// Makes patterns by a counting sort.
#include <pumice/graphs/csr.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

#include "core/row_groups.hpp"
#include "graphs/cuda/long_rows.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max();

void check_extents(std::int64_t rows, std::int64_t columns, const char* op) {
  PUMICE_EXPECTS(rows >= 0 && columns >= 0 && columns <= kMostColumns && rows <= kMostColumns, op,
                 ": ", rows, " rows and ", columns, " columns: give 0 to 2147483647 of either");
}

void check_list(ConstTensorView list, const char* name) {
  const bool is_list =
      list.rank() == 1 && (list.dtype() == DType::i32 || list.dtype() == DType::i64);
  PUMICE_EXPECTS(is_list, "Csr: ", name, " is ", name_of(list.dtype()), ' ',
                 to_string(list.shape()), ": give whole numbers, i32 or i64, [entries]");
  PUMICE_EXPECTS(list.device().kind == DeviceKind::cpu, "Csr: ", name, " is on ",
                 to_string(list.device()), ": copy_to brings it to the CPU");
}

/// Calls body(span) with the elements.
template <class Body> void with_numbers(ConstTensorView list, Body&& body) {
  if (list.dtype() == DType::i64) {
    body(list.span<std::int64_t>());
  } else {
    body(list.span<std::int32_t>());
  }
}

template <class Number>
void check_numbers(std::span<const Number> numbers, std::int64_t limit, const char* name) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto number = static_cast<std::int64_t>(numbers[i]);
    PUMICE_EXPECTS(number >= 0 && number < limit, "Csr: ", name, "[", i, "] = ", number,
                   " where there are ", limit, ": give numbers from 0 on");
  }
}

constexpr std::int64_t kChunk = std::int64_t{1} << 15;   // entries a task

template <class T> Buffer<T> copy_to(StreamView stream, std::span<const T> list) {
  Buffer<T> copy(static_cast<std::int64_t>(list.size()), stream, default_allocator(stream.device));
  if (!list.empty())
    copy_async(copy.data(), stream.device, list.data(), Device{}, list.size_bytes(), stream);
  return copy;
}

/// On a device too, where nobody reads it here.
template <class T> std::span<const T> list_of(const Buffer<T>& buffer) {
  return {buffer.data(), static_cast<std::size_t>(buffer.size())};
}

void check_on_cpu(const CsrView& pattern, const char* op) {
  PUMICE_EXPECTS(pattern.device.kind == DeviceKind::cpu, op, ": the pattern is on ",
                 to_string(pattern.device), ": give one on the CPU");
}

/// An entry's number is its place in most files, which list them row by row.
bool are_places(std::span<const std::int64_t> numbers) {
  for (std::size_t place = 0; place < numbers.size(); ++place)
    if (numbers[place] != static_cast<std::int64_t>(place)) return false;
  return true;
}

}   // namespace

void check_pattern(const CsrView& pattern, const char* op) {
  check_on_cpu(pattern, op);
  check_extents(pattern.rows, pattern.columns, op);
  PUMICE_EXPECTS(static_cast<std::int64_t>(pattern.row_begin.size()) == pattern.rows + 1, op, ": ",
                 pattern.row_begin.size(), " bounds of ", pattern.rows,
                 " rows; give one more than rows");
  std::int64_t before = 0;
  for (std::int64_t row = 0; row <= pattern.rows; ++row) {
    const std::int64_t bound = pattern.begin_of(row);
    PUMICE_EXPECTS(bound >= before && bound <= pattern.entries(), op, ": row_begin[", row,
                   "] = ", bound, " after ", before, " where there are ", pattern.entries(),
                   " entries; bounds ascend from 0 to that number");
    before = bound;
  }
  PUMICE_EXPECTS(pattern.row_begin.front() == 0 && before == pattern.entries(), op,
                 ": row_begin goes from ", pattern.row_begin.front(), " to ", before,
                 "; it goes from 0 to the ", pattern.entries(), " entries");
  for (std::size_t i = 0; i < pattern.column.size(); ++i) {
    PUMICE_EXPECTS(pattern.column[i] >= 0 && pattern.column[i] < pattern.columns, op, ": column[",
                   i, "] = ", pattern.column[i], " where there are ", pattern.columns,
                   " columns: give numbers from 0 on");
  }
  if (pattern.entry.empty()) return;
  PUMICE_EXPECTS(pattern.entry.size() == pattern.column.size(), op, ": ", pattern.entry.size(),
                 " numbers of ", pattern.column.size(), " entries; give one for each, or none");
  std::vector<bool> seen(pattern.entry.size());
  for (std::size_t i = 0; i < pattern.entry.size(); ++i) {
    const std::int64_t number = pattern.entry[i];
    PUMICE_EXPECTS(
        number >= 0 && number < pattern.entries() && !seen[static_cast<std::size_t>(number)], op,
        ": entry[", i, "] = ", number, " is none of ", pattern.entries(),
        " entries, or stands twice: number each once, from 0 on");
    seen[static_cast<std::size_t>(number)] = true;
  }
}

Csr::Csr(std::int64_t rows, std::int64_t columns, ConstTensorView row, ConstTensorView column)
    : rows_(rows), columns_(columns) {
  check_extents(rows, columns, "Csr");
  check_list(row, "row");
  check_list(column, "column");
  PUMICE_EXPECTS(row.rows() == column.rows(), "Csr: ", row.rows(), " rows and ", column.rows(),
                 " columns: give one of each for every entry");
  with_numbers(row, [&](auto rows_of) {
    check_numbers(rows_of, rows, "row");
    cpu::RowGroups groups = cpu::group_rows(rows_of, rows);
    row_begin_ = std::move(groups.begin);
    entry_ = std::move(groups.position);
  });
  column_ = Buffer<std::int32_t>(entry_.size());
  with_numbers(column, [&](auto columns_of) {
    check_numbers(columns_of, columns, "column");
    parallel_for(entry_.size(), kChunk, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t place = begin; place < end; ++place)
        column_[place] =
            static_cast<std::int32_t>(columns_of[static_cast<std::size_t>(entry_[place])]);
    });
  });
  if (are_places(entry_.span())) entry_ = {};
}

CsrView Csr::view() const& {
  return {
      .rows = rows_,
      .columns = columns_,
      .row_begin = list_of(row_begin_),
      .column = list_of(column_),
      .entry = list_of(entry_),
      .device = device_,
      .long_rows = {.part = long_rows_.part.data(),
                    .row = long_rows_.row.data(),
                    .counts = long_rows_.counts.size() > 0 ? long_rows_.counts.data() : nullptr}};
}

Csr transposed(const CsrView& pattern) {
  check_on_cpu(pattern, "transposed");
  Buffer<std::int32_t> row_of(pattern.entries());
  parallel_for(pattern.rows, kChunk, [&](std::int64_t first, std::int64_t last) {
    for (std::int64_t row = first; row < last; ++row)
      std::fill(row_of.data() + pattern.begin_of(row), row_of.data() + pattern.end_of(row),
                static_cast<std::int32_t>(row));
  });
  cpu::RowGroups groups = cpu::group_rows(pattern.column, pattern.columns);
  Csr result;
  result.rows_ = pattern.columns;
  result.columns_ = pattern.rows;
  result.row_begin_ = std::move(groups.begin);
  result.column_ = Buffer<std::int32_t>(pattern.entries());
  result.entry_ = std::move(groups.position);   // places, which become numbers
  parallel_for(pattern.entries(), kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t to = begin; to < end; ++to) {
      const std::int64_t place = result.entry_[to];
      result.column_[to] = row_of[place];
      result.entry_[to] = pattern.number_of(place);
    }
  });
  return result;
}

Csr copy_to(StreamView stream, const CsrView& pattern) {
  check_on_cpu(pattern, "copy_to");
  Csr result;
  result.rows_ = pattern.rows;
  result.columns_ = pattern.columns;
  result.device_ = stream.device;
  result.row_begin_ = copy_to(stream, pattern.row_begin);
  result.column_ = copy_to(stream, pattern.column);
  result.entry_ = copy_to(stream, pattern.entry);
  if (stream.device.kind == DeviceKind::cpu) return result;
  std::int64_t longest = 0;
  for (std::int64_t row = 0; row < pattern.rows; ++row)
    longest = std::max(longest, pattern.end_of(row) - pattern.begin_of(row));
  if (longest <= kPartEntries) return result;
  jit::DeviceRunner runner(stream, default_allocator(stream.device));
  result.long_rows_ = {.part = runner.make<RowPart>(cuda::most_row_parts(pattern.entries())),
                       .row = runner.make<LongRow>(cuda::most_long_rows(pattern.entries())),
                       .counts = runner.make<std::int32_t>(2)};
  cuda::list_long_rows(runner, {.row_begin = result.row_begin_.data(),
                                .rows = result.rows_,
                                .part = result.long_rows_.part.data(),
                                .row = result.long_rows_.row.data(),
                                .counts = result.long_rows_.counts.data()});
  return result;
}

}   // namespace pumice
