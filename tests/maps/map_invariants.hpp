// What holds for every kernel map, whoever made it.
#pragma once

#include <algorithm>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/maps/kernel_map.hpp>

#include "reference/brute_force_map.hpp"

namespace pumice::test {

inline std::vector<std::int32_t> ranks_by_row(std::span<const std::int32_t> order,
                                              std::int64_t rows) {
  std::vector<std::int32_t> rank(static_cast<std::size_t>(rows));
  for (std::size_t i = 0; i < rank.size(); ++i) {
    rank[order.empty() ? i : static_cast<std::size_t>(order[i])] = static_cast<std::int32_t>(i);
  }
  return rank;
}

/// Whether the ranks of `rows` ascend within every offset, strictly: so no row repeats in one.
inline bool ascend_within_offsets(const KernelMapView& map, std::span<const std::int32_t> rows,
                                  const std::vector<std::int32_t>& rank) {
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    const auto end = static_cast<std::size_t>(map.offset_begin[static_cast<std::size_t>(k) + 1]);
    auto i = static_cast<std::size_t>(map.offset_begin[static_cast<std::size_t>(k)]) + 1;
    for (; i < end; ++i) {
      if (rank[static_cast<std::size_t>(rows[i])] <= rank[static_cast<std::size_t>(rows[i - 1])]) {
        return false;
      }
    }
  }
  return true;
}

inline bool rows_are_distinct_within_offsets(const KernelMapView& map,
                                             std::span<const std::int32_t> rows) {
  for (std::size_t k = 0; k < static_cast<std::size_t>(map.offsets); ++k) {
    const auto begin = rows.begin() + map.offset_begin[k];
    const auto end = rows.begin() + map.offset_begin[k + 1];
    if (std::set<std::int32_t>(begin, end).size() != static_cast<std::size_t>(end - begin)) {
      return false;
    }
  }
  return true;
}

inline std::set<brute_force::Pair> pair_set(const KernelMapView& map) {
  std::set<brute_force::Pair> pairs;
  for (std::size_t k = 0; k < static_cast<std::size_t>(map.offsets); ++k) {
    for (auto i = static_cast<std::size_t>(map.offset_begin[k]);
         i < static_cast<std::size_t>(map.offset_begin[k + 1]); ++i) {
      pairs.emplace(k, map.in[i], map.out[i]);
    }
  }
  return pairs;
}

inline void expect_well_formed(const KernelMap& map) {
  const KernelMapView view = map.view();
  ASSERT_EQ(view.offsets, map.window().volume());
  ASSERT_EQ(view.in_rows, map.in()->size());
  ASSERT_EQ(view.out_rows, map.out()->size());
  ASSERT_EQ(view.offset_begin.size(), static_cast<std::size_t>(view.offsets) + 1);
  ASSERT_EQ(view.offset_begin.front(), 0);
  ASSERT_EQ(view.offset_begin.back(), view.pairs());
  ASSERT_EQ(view.in.size(), view.out.size());
  EXPECT_TRUE(std::is_sorted(view.offset_begin.begin(), view.offset_begin.end()));
  EXPECT_EQ(view.in_order.empty(), map.in()->in_key_order());
  EXPECT_EQ(view.out_order.empty(), map.out()->in_key_order());
  EXPECT_TRUE(view.sorted_by_out);
  EXPECT_TRUE(ascend_within_offsets(view, view.out, ranks_by_row(view.out_order, view.out_rows)));
  EXPECT_EQ(view.sorted_by_in,
            ascend_within_offsets(view, view.in, ranks_by_row(view.in_order, view.in_rows)));
  EXPECT_TRUE(rows_are_distinct_within_offsets(view, view.in));
  if (view.has_identity_offset) {
    const auto begin = view.offset_begin[static_cast<std::size_t>(view.offsets / 2)];
    ASSERT_EQ(view.pairs_of(view.offsets / 2), view.out_rows);
    for (std::int64_t i = begin; i < begin + view.out_rows; ++i) {
      ASSERT_EQ(view.in[static_cast<std::size_t>(i)], view.out[static_cast<std::size_t>(i)]);
    }
  }
}

}   // namespace pumice::test
