// What operators over the entries of a pattern ask of their arguments.
#pragma once

#include <cstdint>

#include <pumice/core/error.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/kernels/gather_reduce.hpp>

#include "ops/checks.hpp"

namespace pumice::checks {

inline bool is_on_device(const CsrView& pattern) {
  return pattern.device.kind == DeviceKind::cuda;
}

/// Only its size is looked at (check_pattern goes over all of it).
inline void pattern_size(const CsrView& pattern, const char* op) {
  PUMICE_EXPECTS(static_cast<std::int64_t>(pattern.row_begin.size()) == pattern.rows + 1 &&
                     (pattern.entry.empty() || pattern.entry.size() == pattern.column.size()) &&
                     (is_on_device(pattern) || pattern.row_begin.back() == pattern.entries()),
                 op, ": a pattern of ", pattern.rows, " rows has ", pattern.row_begin.size(),
                 " bounds, ", pattern.entries(), " columns and ", pattern.entry.size(),
                 " numbers: give the view of a Csr");
}

/// Of patterns on a device, of which the host knows no row: long ones are listed, but in a pattern
/// that was not made by a Csr.
inline void whole_rows(const CsrView& pattern, const char* op) {
  const bool is_listed = pattern.long_rows.counts != nullptr || !pattern.unit_row.empty();
  PUMICE_EXPECTS(!is_on_device(pattern) || is_listed || pattern.entries() <= kMostWholeRow, op,
                 ": a pattern of ", pattern.entries(),
                 " entries on a device has no list of long rows: give at most ", kMostWholeRow,
                 ", or the view of a Csr that copy_to, transposed or a list of entries made");
}

inline void lies_with(ConstTensorView tensor, const CsrView& pattern, const char* op,
                      const char* name) {
  PUMICE_EXPECTS(tensor.device() == pattern.device, op, ": ", name, " is on ",
                 to_string(tensor.device()), " and the pattern on ", to_string(pattern.device),
                 ": copy_to brings one to the other");
}

/// `rows`: of the pattern, of which they are `whose`.
inline void rows_of(ConstTensorView tensor, const CsrView& pattern, std::int64_t rows,
                    const char* op, const char* name, const char* whose) {
  matrix(tensor, op, name);
  lies_with(tensor, pattern, op, name);
  PUMICE_EXPECTS(tensor.rows() == rows, op, ": ", name, " has ", tensor.rows(),
                 " rows and the pattern ", rows, ' ', whose, ": give one row for each");
}

inline bool picks(EntryReduction reduction) {
  return reduction == EntryReduction::max || reduction == EntryReduction::min;
}

/// Channels are cut into so many.
inline void head_count(std::int64_t heads, std::int64_t channels, const char* op) {
  constexpr std::int64_t kMostHeads = 65535;   // blocks along the second axis of a launch
  PUMICE_EXPECTS(heads >= 1 && channels % heads == 0, op, ": ", heads, " heads of ", channels,
                 " channels: give a divisor");
  PUMICE_EXPECTS(heads <= kMostHeads, op, ": ", heads, " heads: give at most ", kMostHeads);
}

/// [entries, heads]; undefined as it is.
inline ConstTensorView entry_values(ConstTensorView values, const CsrView& pattern,
                                    std::int64_t entries, ConstTensorView features,
                                    const char* op) {
  if (!values.defined()) return values;
  lies_with(values, pattern, op, "values");
  const bool fits = (values.rank() == 1 || values.rank() == 2) && values.rows() == entries;
  PUMICE_EXPECTS(fits, op, ": values have shape ", to_string(values.shape()), ": give [", entries,
                 "] or [", entries, ", heads], one for each entry");
  same_dtype(values, features.dtype(), op, "values", "features");
  const std::int64_t heads = values.rank() == 2 ? values.extent(1) : 1;
  head_count(heads, features.extent(1), op);
  return {values.raw(), values.dtype(), {entries, heads}, values.stream()};
}

/// By its size.
inline void is_transpose(const CsrView& backwards, const CsrView& pattern, const char* op) {
  pattern_size(backwards, op);
  PUMICE_EXPECTS(backwards.device == pattern.device, op, ": backwards is on ",
                 to_string(backwards.device), " and pattern on ", to_string(pattern.device),
                 ": give both of one device");
  PUMICE_EXPECTS(backwards.rows == pattern.columns && backwards.columns == pattern.rows &&
                     backwards.entries() == pattern.entries(),
                 op, ": backwards has ", backwards.rows, " x ", backwards.columns, " and ",
                 backwards.entries(), " entries, and the pattern ", pattern.rows, " x ",
                 pattern.columns, " and ", pattern.entries(), " entries: give transposed(pattern)");
}

}   // namespace pumice::checks
