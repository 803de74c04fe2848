// Positions of a list sorted by the row they name: how scattered additions become sums that each
// have one owner, in an order that does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

struct RowGroups {
  Buffer<std::int64_t> begin;      // [groups + 1]
  Buffer<std::int64_t> position;   // [kept]: ascending within a group

  std::span<const std::int64_t> of(std::int64_t group) const {
    return position.span().subspan(static_cast<std::size_t>(begin[group]),
                                   static_cast<std::size_t>(begin[group + 1] - begin[group]));
  }
};

/// Groups the positions p of `rows` by rows[p], leaving out negative ones; stable. Every row must
/// be below `groups`.
RowGroups group_rows(std::span<const std::int32_t> rows, std::int64_t groups);
RowGroups group_rows(std::span<const std::int64_t> rows, std::int64_t groups);

/// For distinct rows: which position names row r, or -1. Empty (size 0) when some row repeats.
template <class Row>
Buffer<std::int64_t> invert_rows(std::span<const Row> rows, std::int64_t groups);

/// UserError, naming position and value, unless all of `rows` are in [-1, limit). Of a list on a
/// device only shape and type are looked at.
void check_rows(ConstTensorView rows, std::int64_t limit, const char* op, const char* name);

/// Calls body(span) with the elements of an i32 or i64 vector.
template <class Body> decltype(auto) dispatch_rows(ConstTensorView rows, Body&& body) {
  if (rows.dtype() == DType::i64) return body(rows.span<std::int64_t>());
  return body(rows.span<std::int32_t>());
}

}   // namespace pumice::cpu
