// The rank of a row: the inverse of an order that lists rows by rank.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/buffer.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>

namespace pumice {

class RankOfRow {
 public:
  /// `order` is rank -> row, a permutation; empty when every rank equals its row.
  explicit RankOfRow(std::span<const std::int32_t> order)
      : rank_(static_cast<std::int64_t>(order.size())) {
    constexpr std::int64_t kGrain = 1 << 14;
    parallel_for(rank_.size(), kGrain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t rank = begin; rank < end; ++rank) {
        rank_[order[static_cast<std::size_t>(rank)]] = static_cast<std::int32_t>(rank);
      }
    });
  }
  std::int64_t operator()(std::int32_t row) const { return rank_.size() == 0 ? row : rank_[row]; }

 private:
  Buffer<std::int32_t> rank_;
};

}   // namespace pumice
