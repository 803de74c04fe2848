// Positions of a list sorted by the row they name: how scattered additions become sums that each
// have one owner, in an order that does not depend on the number of threads.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>

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

}   // namespace pumice::cpu
