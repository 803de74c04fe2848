// Lists of row numbers: inverted, and checked for numbers that name no row.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

/// For distinct rows: which position names row r, or -1. Empty (size 0) when some row repeats.
template <class Row>
Buffer<std::int64_t> invert_rows(std::span<const Row> rows, std::int64_t groups);

/// Remembers the first element of a list that names no row, for loops that go around it.
class BadRows {
 public:
  /// From any thread.
  void note(std::int64_t element) {
    std::int64_t seen = first_.load(std::memory_order_relaxed);
    while (element < seen && !first_.compare_exchange_weak(seen, element)) {
    }
  }
  /// UserError, naming element and value, where there was one. `columns`: of a list [rows,
  /// columns].
  template <class Row>
  void raise(std::span<const Row> rows, std::int64_t limit, const char* op, const char* name,
             std::int64_t columns = 1) const {
    const std::int64_t at = first_.load();
    if (at < static_cast<std::int64_t>(rows.size()))
      refuse(at, static_cast<std::int64_t>(rows[static_cast<std::size_t>(at)]), limit, op, name,
             columns);
  }

 private:
  [[noreturn]] static void refuse(std::int64_t element, std::int64_t row, std::int64_t limit,
                                  const char* op, const char* name, std::int64_t columns);

  std::atomic<std::int64_t> first_{std::numeric_limits<std::int64_t>::max()};
};

/// UserError, naming element and value, unless all of `rows` are in [-1, limit). Of a list on a
/// device only shape and type are looked at.
void check_rows(ConstTensorView rows, std::int64_t limit, const char* op, const char* name);
/// The same of an i32 list [rows, columns] on the host.
void check_row_table(ConstTensorView rows, std::int64_t limit, const char* op, const char* name);

/// Calls body(span) with the elements of an i32 or i64 vector.
template <class Body> decltype(auto) dispatch_rows(ConstTensorView rows, Body&& body) {
  if (rows.dtype() == DType::i64) return body(rows.span<std::int64_t>());
  return body(rows.span<std::int32_t>());
}

}   // namespace pumice::cpu
