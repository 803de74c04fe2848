// Generated graphs have the edges that were asked for, the same every time, and the degrees of
// their kind.
#include <pumice/graphs/generate.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

using Numbers = std::vector<std::int64_t>;

/// Of each node, along one row of the edges: 0 sources, 1 targets.
Numbers degrees(const Tensor& edges, std::int64_t nodes, int side) {
  Numbers counts(static_cast<std::size_t>(nodes));
  const std::int64_t count = edges.extent(1);
  for (std::int64_t e = 0; e < count; ++e)
    ++counts.at(static_cast<std::size_t>(edges.data<std::int64_t>()[side * count + e]));
  return counts;
}

Numbers descending(Numbers numbers) {
  std::ranges::sort(numbers, std::greater<>());
  return numbers;
}

void expect_same_for_any_threads(const std::function<Tensor()>& make) {
  set_threads(1);
  const Tensor alone = make();
  for (const int threads : {2, 5}) {
    set_threads(threads);
    EXPECT_TRUE(same_bits(alone, make()));
  }
  set_threads(0);
}

TEST(Generate, TheSameEdgesForAnyNumberOfThreads) {
  const std::vector<std::int64_t> extents{130, 70, 9};
  expect_same_for_any_threads(
      [] { return power_law_edges({.nodes = 100'003, .edges = 400'001, .seed = 3}); });
  expect_same_for_any_threads([] { return rmat_edges(17, 400'001, 3); });
  expect_same_for_any_threads([&] { return grid_edges(extents, true); });
}

TEST(Generate, PowerLawHasItsDegreesOnBothSides) {
  constexpr std::int64_t kNodes = 50'000, kEdges = 1'000'000;
  const Tensor edges = power_law_edges({.nodes = kNodes, .edges = kEdges, .seed = 1});
  EXPECT_EQ(edges.shape(), (Shape{2, kEdges}));
  EXPECT_TRUE(
      std::is_sorted(edges.data<std::int64_t>() + kEdges, edges.data<std::int64_t>() + 2 * kEdges));
  const Numbers in = descending(degrees(edges, kNodes, 1)),
                out = descending(degrees(edges, kNodes, 0));
  // Pareto 1.5 has mean 3 before the cut at nodes / 50 and about 2.9 after it: the mean of 20 edges
  // is some 7 for each unit of weight, and the j-th largest weight about (nodes / j)^(1 / 1.5).
  for (const std::size_t j : {100u, 1000u, 10'000u}) {
    const double expected = 20 / 2.9 * std::pow(kNodes / static_cast<double>(j), 1 / 1.5);
    EXPECT_NEAR(static_cast<double>(in[j]) / expected, 1, 0.2) << j;
  }
  // The last place of the order has what falls behind the end: 51^-1.2 of the edges.
  EXPECT_NEAR(static_cast<double>(out[0]) / kEdges, std::pow(51, -1.2), 1e-3);
  EXPECT_GT(out[1], 20);
  EXPECT_EQ(degrees(edges, kNodes, 0).size(), static_cast<std::size_t>(kNodes));
}

TEST(Generate, SeedsGiveOtherEdges) {
  const auto power_law = [](std::uint64_t seed) {
    return power_law_edges({.nodes = 1000, .edges = 5000, .seed = seed});
  };
  EXPECT_TRUE(same_bits(power_law(4), power_law(4)));
  EXPECT_FALSE(same_bits(power_law(4), power_law(5)));
  EXPECT_FALSE(same_bits(rmat_edges(10, 5000, 4), rmat_edges(10, 5000, 5)));
}

// Each bit of a source is set with the same chance, and each of a target, apart from the other
// bits.
TEST(Generate, RmatHasItsSharesInEveryStep) {
  constexpr std::int64_t kEdges = 200'000;
  const RmatShares shares{.first_first = 0.5, .first_second = 0.2, .second_first = 0.2};
  const Tensor edges = rmat_edges(5, kEdges, 2, shares);
  const auto* const source = edges.data<std::int64_t>();
  const auto* const target = source + kEdges;
  for (int bit = 0; bit < 5; ++bit) {
    double both = 0, one = 0, other = 0;
    for (std::int64_t e = 0; e < kEdges; ++e) {
      const bool of_source = (source[e] >> bit & 1) != 0, of_target = (target[e] >> bit & 1) != 0;
      both += of_source && of_target ? 1 : 0;
      one += of_target && !of_source ? 1 : 0;
      other += of_source && !of_target ? 1 : 0;
    }
    // Five deviations of a share of 0.2 among 200,000 are 0.0045.
    EXPECT_NEAR(both / kEdges, 0.1, 0.0045);
    EXPECT_NEAR(one / kEdges, 0.2, 0.0045);
    EXPECT_NEAR(other / kEdges, 0.2, 0.0045);
  }
  EXPECT_EQ(degrees(rmat_edges(0, 7, 1), 1, 0)[0], 7);
}

TEST(Generate, GridsJoinNeighboursAlongEachAxis) {
  for (const bool wraps : {false, true}) {
    for (const Numbers& extents : {Numbers{1}, {2}, {5}, {3, 4}, {2, 1, 6}, {0, 3}, {200, 300}}) {
      Numbers expected_source, expected_target;
      std::int64_t nodes = 1;
      for (const std::int64_t extent : extents)
        nodes *= extent;
      for (std::int64_t to = 0; to < nodes; ++to) {
        std::set<std::int64_t> from;
        std::int64_t stride = nodes;
        for (const std::int64_t extent : extents) {
          stride /= extent;
          const std::int64_t at = to / stride % extent;
          for (const std::int64_t step : {-1, 1}) {
            const std::int64_t there =
                wraps && extent > 2 ? (at + step + extent) % extent : at + step;
            if (there >= 0 && there < extent) from.insert(to + (there - at) * stride);
          }
        }
        expected_source.insert(expected_source.end(), from.begin(), from.end());
        expected_target.insert(expected_target.end(), from.size(), to);
      }
      const Tensor edges = grid_edges(extents, wraps);
      const auto all = edges.span<std::int64_t>();
      Numbers expected = expected_source;
      expected.insert(expected.end(), expected_target.begin(), expected_target.end());
      EXPECT_EQ(Numbers(all.begin(), all.end()), expected);
    }
  }
}

TEST(Generate, RefusesWhatMakesNoGraph) {
  EXPECT_EQ(power_law_edges({}).extent(1), 0);
  EXPECT_EQ(power_law_edges({.nodes = 1, .edges = 3}).span<std::int64_t>()[5], 0);
  EXPECT_EQ(message_of([] { power_law_edges({.nodes = 0, .edges = 1}); }),
            "power_law_edges: nodes = 0 for 1 edges: give 1 to 2147483647");
  EXPECT_EQ(message_of([] { power_law_edges({.nodes = 5, .edges = -1}); }),
            "power_law_edges: edges = -1: give 0 to 2^40 of them");
  EXPECT_EQ(message_of([] { power_law_edges({.nodes = 5, .edges = 1, .target_exponent = 0}); }),
            "power_law_edges: target_exponent = 0: give a number above 0, to 1000");
  EXPECT_EQ(message_of([] { rmat_edges(31, 1, 0); }), "rmat_edges: scale = 31: give 0 to 30");
  EXPECT_EQ(
      message_of([] { rmat_edges(3, 1, 0, {.first_first = 0.9, .first_second = 0.2}); }),
      "rmat_edges: shares 0.9, 0.2 and 0.19: give numbers from 0 on that add up to 1 at most");
  EXPECT_EQ(message_of([] { grid_edges({}); }), "grid_edges: 0 extents: give 1 to 8");
  EXPECT_EQ(message_of([] {
              grid_edges(Numbers{4, -1});
            }),
            "grid_edges: extents[1] = -1: give 0 or more");
  EXPECT_EQ(message_of([] {
              grid_edges(Numbers{1 << 16, 1 << 16});
            }),
            "grid_edges: these extents make more than 2147483647 nodes: give smaller ones");
}

}   // namespace
}   // namespace pumice::test
