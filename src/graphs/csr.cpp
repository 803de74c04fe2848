// Checks patterns, and hands what makes them to the back ends.
#include <pumice/graphs/csr.hpp>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>

#include "graphs/cpu/patterns.hpp"
#include "graphs/cuda/balance.hpp"
#include "graphs/cuda/patterns.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kMostColumns = std::numeric_limits<std::int32_t>::max();

void check_extents(std::int64_t rows, std::int64_t columns, const char* op) {
  PUMICE_EXPECTS(rows >= 0 && columns >= 0 && columns <= kMostColumns && rows <= kMostColumns, op,
                 ": ", rows, " rows and ", columns, " columns: give 0 to 2147483647 of either");
}

void check_list(ConstTensorView list, const char* op, const char* name) {
  const bool is_list =
      list.rank() == 1 && (list.dtype() == DType::i32 || list.dtype() == DType::i64);
  PUMICE_EXPECTS(is_list, op, ": ", name, " is ", name_of(list.dtype()), ' ',
                 to_string(list.shape()), ": give whole numbers, i32 or i64, [entries]");
}

template <class T> Buffer<T> copy_to(StreamView stream, std::span<const T> list) {
  Buffer<T> copy(static_cast<std::int64_t>(list.size()), stream, default_allocator(stream.device));
  if (!list.empty())
    copy_async(copy.data(), stream.device, list.data(), Device{}, list.size_bytes(), stream);
  return copy;
}

template <class T> Buffer<T> copy_from(std::span<const T> list, StreamView stream) {
  Buffer<T> copy(static_cast<std::int64_t>(list.size()));
  if (!list.empty())
    copy_async(copy.data(), Device{}, list.data(), stream.device, list.size_bytes(), stream);
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

Csr::Csr(std::int64_t rows, std::int64_t columns, ConstTensorView row, ConstTensorView column,
         const EntryNames& names)
    : rows_(rows), columns_(columns), device_(row.device()) {
  const char* const op = names.op;
  check_extents(rows, columns, op);
  check_list(row, op, names.row);
  check_list(column, op, names.column);
  PUMICE_EXPECTS(row.rows() == column.rows(), op, ": ", row.rows(), " rows and ", column.rows(),
                 " columns: give one of each for every entry");
  PUMICE_EXPECTS(row.device() == column.device(), op, ": ", names.row, " is on ",
                 to_string(row.device()), " and ", names.column, " on ", to_string(column.device()),
                 ": copy_to brings one to the other");
  if (device_.kind == DeviceKind::cpu) {
    lists_ = cpu::group_entries(rows, columns, row, column, names);
    return;
  }
  PUMICE_EXPECTS(row.rows() == 0 || (rows > 0 && columns > 0), op, ": ", row.rows(),
                 " entries where there are ", rows, " rows and ", columns,
                 " columns: give numbers from 0 on");
  lists_ = cuda::group_entries(rows, columns, row, column, names);
}

CsrView Csr::view() const& {
  return {
      .rows = rows_,
      .columns = columns_,
      .row_begin = list_of(lists_.row_begin),
      .column = list_of(lists_.column),
      .entry = list_of(lists_.entry),
      .device = device_,
      .long_rows = {.part = lists_.part.data(),
                    .row = lists_.long_row.data(),
                    .counts = lists_.long_counts.size() > 0 ? lists_.long_counts.data() : nullptr,
                    .part_entries = part_entries(lists_.column.size()),
                    .arrived = const_cast<std::uint32_t*>(lists_.arrived.data())},
      .unit_row = list_of(lists_.unit_row),
      .kept = kept_.get()};
}

Csr transposed(const CsrView& pattern, StreamView stream) {
  PUMICE_EXPECTS(pattern.device == stream.device, "transposed: the pattern is on ",
                 to_string(pattern.device), " and the stream on ", to_string(stream.device),
                 ": give a stream of the pattern's device");
  return {pattern.columns, pattern.rows, pattern.device,
          pattern.device.kind == DeviceKind::cpu ? cpu::transposed(pattern)
                                                 : cuda::transposed(pattern, stream)};
}

Csr copy_to(StreamView stream, const CsrView& pattern) {
  check_on_cpu(pattern, "copy_to");
  PatternLists lists{.row_begin = copy_to(stream, pattern.row_begin),
                     .column = copy_to(stream, pattern.column),
                     .entry = copy_to(stream, pattern.entry)};
  if (stream.device.kind != DeviceKind::cpu) {
    std::int64_t longest = 0;
    for (std::int64_t row = 0; row < pattern.rows; ++row)
      longest = std::max(longest, pattern.end_of(row) - pattern.begin_of(row));
    cuda::add_balance(lists, pattern.rows, stream, longest);
  }
  return {pattern.rows, pattern.columns, stream.device, std::move(lists)};
}

Csr copy_to_host(const CsrView& pattern, StreamView stream) {
  PUMICE_EXPECTS(pattern.device == stream.device, "copy_to_host: the pattern is on ",
                 to_string(pattern.device), " and the stream on ", to_string(stream.device),
                 ": give a stream of the pattern's device");
  PatternLists lists{.row_begin = copy_from(pattern.row_begin, stream),
                     .column = copy_from(pattern.column, stream),
                     .entry = copy_from(pattern.entry, stream)};
  wait(stream);
  return {pattern.rows, pattern.columns, Device{}, std::move(lists)};
}

}   // namespace pumice
