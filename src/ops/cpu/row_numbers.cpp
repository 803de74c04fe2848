#include "ops/cpu/row_numbers.hpp"

#include <algorithm>
#include <atomic>
#include <string>

#include <pumice/core/parallel.hpp>

namespace pumice::cpu {
namespace {

constexpr std::int64_t kChunk = 1 << 15;   // positions a task

}   // namespace

template <class Row>
Buffer<std::int64_t> invert_rows(std::span<const Row> rows, std::int64_t groups) {
  Buffer<std::int64_t> inverse(groups);
  parallel_for(groups, kChunk, [&](std::int64_t begin, std::int64_t end) {
    std::fill(inverse.data() + begin, inverse.data() + end, -1);
  });
  std::atomic<bool> repeats{false};
  parallel_for(static_cast<std::int64_t>(rows.size()), kChunk,
               [&](std::int64_t begin, std::int64_t end) {
                 for (std::int64_t i = begin; i < end; ++i) {
                   const auto row = rows[static_cast<std::size_t>(i)];
                   if (row < 0) continue;
                   const std::atomic_ref<std::int64_t> slot(inverse[row]);
                   if (slot.exchange(i, std::memory_order_relaxed) >= 0) repeats = true;
                 }
               });
  if (repeats) return {};
  return inverse;
}
template Buffer<std::int64_t> invert_rows(std::span<const std::int32_t>, std::int64_t);
template Buffer<std::int64_t> invert_rows(std::span<const std::int64_t>, std::int64_t);

void BadRows::refuse(std::int64_t element, std::int64_t row, std::int64_t limit, const char* op,
                     const char* name, std::int64_t columns) {
  const std::string place =
      columns == 1 ? std::to_string(element)
                   : std::to_string(element / columns) + ", " + std::to_string(element % columns);
  detail::raise_user(op, ": ", name, "[", place, "] = ", row, " is not a row; rows are 0 to ",
                     limit - 1, ", or -1 for none");
}

namespace {

template <class Row>
void check_all(std::span<const Row> rows, std::int64_t limit, const char* op, const char* name,
               std::int64_t columns) {
  BadRows bad;
  parallel_for(static_cast<std::int64_t>(rows.size()), kChunk,
               [&](std::int64_t begin, std::int64_t end) {
                 const auto is_good = [&](std::int64_t i) {
                   const auto row = rows[static_cast<std::size_t>(i)];
                   return row >= -1 && row < limit;
                 };
                 bool good = true;
                 for (std::int64_t i = begin; i < end; ++i)
                   good &= is_good(i);
                 if (good) return;
                 while (is_good(begin))
                   ++begin;
                 bad.note(begin);
               });
  bad.raise(rows, limit, op, name, columns);
}

}   // namespace

void check_rows(ConstTensorView rows, std::int64_t limit, const char* op, const char* name) {
  PUMICE_EXPECTS(rows.rank() == 1, op, ": ", name, " has shape ", to_string(rows.shape()),
                 "; it must be a vector of row numbers");
  PUMICE_EXPECTS(rows.dtype() == DType::i32 || rows.dtype() == DType::i64, op, ": ", name,
                 " holds ", name_of(rows.dtype()), "; row numbers are i32 or i64");
  if (rows.device().kind == DeviceKind::cuda) return;   // kernels see the numbers, nobody waits
  dispatch_rows(rows, [&](auto values) { check_all(values, limit, op, name, 1); });
}

void check_row_table(ConstTensorView rows, std::int64_t limit, const char* op, const char* name) {
  check_all(rows.span<std::int32_t>(), limit, op, name, rows.row_elements());
}

}   // namespace pumice::cpu
