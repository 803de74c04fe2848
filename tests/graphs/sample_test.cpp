// Sampled neighbours are edges of the graph, as many as were asked for, each choice as likely as
// the others.
#include <pumice/graphs/sample.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>
#include <pumice/core/random.hpp>

#include "graphs/random_pattern.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

using Numbers = std::vector<std::int64_t>;

Numbers numbers_of(const Tensor& list) {
  const auto span = list.span<std::int64_t>();
  return {span.begin(), span.end()};
}

/// How a sample has to look, written down hop by hop from its own entries: which nodes are new in
/// which order, and how many edges each has.
void check_sample(const PatternCase& graph, const Numbers& seeds, const SampleOptions& options,
                  const NeighbourSample& sample) {
  const Numbers node = numbers_of(sample.node), entry = numbers_of(sample.entry);
  std::map<std::int64_t, Numbers> edges_to;   // by target
  for (std::size_t e = 0; e < graph.row.size(); ++e)
    edges_to[graph.row[e]].push_back(static_cast<std::int64_t>(e));
  Numbers found = seeds;
  std::size_t next = 0, row = 0;
  ASSERT_EQ(sample.hops(), options.fan_outs.size());
  ASSERT_EQ(sample.nodes_within[0], static_cast<std::int64_t>(seeds.size()));
  for (std::size_t hop = 0; hop < sample.hops(); ++hop) {
    const std::size_t end = found.size();
    for (; row < end; ++row) {
      const Numbers& there = edges_to[found[row]];
      const auto degree = static_cast<std::int64_t>(there.size());
      const std::int64_t fan_out = options.fan_outs[hop];
      std::int64_t count = degree;
      if (fan_out >= 0) count = options.replace && degree > 0 ? fan_out : std::min(degree, fan_out);
      ASSERT_EQ(sample.row_begin[static_cast<std::int64_t>(row)], static_cast<std::int64_t>(next));
      std::set<std::int64_t> different;
      for (std::int64_t i = 0; i < count; ++i, ++next) {
        ASSERT_LT(next, entry.size());
        const std::int64_t number = entry[next];
        ASSERT_TRUE(std::ranges::binary_search(there, number));
        different.insert(number);
        const std::int64_t source = graph.column[static_cast<std::size_t>(number)];
        auto at = std::ranges::find(found, source);
        if (at == found.end()) at = found.insert(found.end(), source);
        ASSERT_EQ(sample.column[static_cast<std::int64_t>(next)], at - found.begin());
      }
      if (!options.replace) {
        EXPECT_EQ(static_cast<std::int64_t>(different.size()), count);
      }
    }
    ASSERT_EQ(sample.nodes_within[hop + 1], static_cast<std::int64_t>(found.size()));
  }
  EXPECT_EQ(next, entry.size());
  EXPECT_EQ(node, found);
}

PatternCase square(std::int64_t nodes, std::int64_t edges, std::uint64_t seed) {
  return random_pattern(nodes, nodes, edges, seed);
}

/// Different nodes in a random order.
Numbers some_nodes(std::int64_t nodes, std::int64_t count, std::uint64_t seed) {
  Numbers all(static_cast<std::size_t>(nodes));
  std::iota(all.begin(), all.end(), 0);
  Random random(seed);
  for (std::int64_t i = nodes - 1; i > 0; --i)
    std::swap(all[static_cast<std::size_t>(i)],
              all[static_cast<std::size_t>(random.integer(0, i))]);
  all.resize(static_cast<std::size_t>(count));
  return all;
}

std::vector<PatternCase> graphs() {
  std::vector<PatternCase> made{
      {"no node", 0, 0, {}, {}},
      {"nodes without edges", 33, 33, {}, {}},
      {"one node with a loop", 1, 1, {0}, {0}},
      {"an edge that stands three times", 3, 3, {1, 1, 1, 2}, {0, 0, 0, 1}},
      {"a ring", 31, 31, {}, {}},
  };
  for (std::int64_t i = 0; i < 31; ++i) {
    made[4].row.push_back(i);
    made[4].column.push_back((i + 1) % 31);
  }
  PatternCase heavy{"one row has all", 500, 500, {}, {}};
  for (std::int64_t e = 0; e < 3000; ++e) {
    heavy.row.push_back(17);
    heavy.column.push_back(e * 7 % 500);
  }
  made.push_back(std::move(heavy));
  made.push_back(square(33, 200, 1));
  made.push_back(square(400, 8000, 2));
  return made;
}

TEST(SampleNeighbours, TakesEdgesThatThereAreAndAsManyAsAskedFor) {
  const std::vector<Numbers> fan_outs{{-1}, {0}, {1}, {2, 3}, {5, -1, 1}, {31, 33}, {40, 0, 2}};
  for (const PatternCase& graph : graphs()) {
    SCOPED_TRACE(graph.name);
    const Csr csr = graph.csr();
    for (const Numbers& fan_out : fan_outs) {
      for (const std::int64_t count : {0, 1, 7, 500}) {
        for (const bool replace : {false, true}) {
          const Numbers seeds = some_nodes(graph.rows, std::min(count, graph.rows), 5);
          const SampleOptions options{.fan_outs = fan_out, .replace = replace, .seed = 3};
          check_sample(graph, seeds, options, sample_neighbours(csr.view(), seeds, options));
          if (HasFatalFailure()) FAIL() << count << " seeds, " << fan_out.size() << " hops";
        }
      }
    }
  }
}

TEST(SampleNeighbours, BlocksArePatternsOfTheFirstNodes) {
  const PatternCase graph = square(400, 8000, 2);
  const Csr csr = graph.csr();
  const Numbers seeds = some_nodes(400, 20, 1);
  const NeighbourSample sample = sample_neighbours(csr.view(), seeds, {.fan_outs = {4, 3, 2}});
  for (std::size_t hop = 0; hop < 3; ++hop) {
    const CsrView block = sample.block(hop);
    check_pattern(block, "test");
    EXPECT_EQ(block.rows, sample.nodes_within[hop]);
    EXPECT_EQ(block.columns, sample.nodes_within[hop + 1]);
    for (std::int64_t row = 0; row < block.rows; ++row) {
      for (std::int64_t e = block.begin_of(row); e < block.end_of(row); ++e) {
        const auto number =
            static_cast<std::size_t>(numbers_of(sample.entry)[static_cast<std::size_t>(e)]);
        const auto node = numbers_of(sample.node);
        ASSERT_EQ(graph.row[number], node[static_cast<std::size_t>(row)]);
        ASSERT_EQ(graph.column[number],
                  node[static_cast<std::size_t>(block.column[static_cast<std::size_t>(e)])]);
      }
    }
  }
  EXPECT_EQ(sample.block(2).entries(), sample.entry.elements());
  EXPECT_EQ(message_of([&] { (void)sample.block(3); }),
            "block: hop 3 of 3: give a number below that");
}

bool same(const NeighbourSample& a, const NeighbourSample& b) {
  return same_bits(a.node, b.node) && same_bits(a.entry, b.entry) &&
         std::ranges::equal(a.row_begin.span(), b.row_begin.span()) &&
         std::ranges::equal(a.column.span(), b.column.span()) && a.nodes_within == b.nodes_within;
}

TEST(SampleNeighbours, GivesTheSameBitsForAnyNumberOfThreads) {
  const Csr csr = square(65'537, 700'000, 6).csr();
  const Numbers seeds = some_nodes(65'537, 5000, 7);
  for (const bool replace : {false, true}) {
    const SampleOptions options{.fan_outs = {8, 5, 40}, .replace = replace, .seed = 1, .batch = 2};
    set_threads(1);
    const NeighbourSample alone = sample_neighbours(csr.view(), seeds, options);
    for (const int threads : {2, 4, 7}) {
      set_threads(threads);
      for (int again = 0; again < 5; ++again)
        EXPECT_TRUE(same(alone, sample_neighbours(csr.view(), seeds, options)));
    }
    set_threads(0);
  }
}

TEST(SampleNeighbours, DependsOnSeedAndBatchAndOnNoOtherNode) {
  const Csr csr = square(200, 8000, 6).csr();
  const Numbers seeds = some_nodes(200, 40, 7), alone{seeds[13]};
  const SampleOptions options{.fan_outs = {4}, .seed = 1, .batch = 2};
  SampleOptions other_seed = options, other_batch = options;
  other_seed.seed = 2;
  other_batch.batch = 3;
  const NeighbourSample sample = sample_neighbours(csr.view(), seeds, options);
  EXPECT_TRUE(same(sample, sample_neighbours(csr.view(), seeds, options)));
  EXPECT_FALSE(same(sample, sample_neighbours(csr.view(), seeds, other_seed)));
  EXPECT_FALSE(same(sample, sample_neighbours(csr.view(), seeds, other_batch)));
  const Numbers of_all = numbers_of(sample.entry);
  EXPECT_EQ(numbers_of(sample_neighbours(csr.view(), alone, options).entry),
            Numbers(of_all.begin() + 13 * 4, of_all.begin() + 14 * 4));
}

/// Sum of (seen - expected)^2 / expected over counts that are equally likely.
double chi_square(const Numbers& seen, double expected) {
  double sum = 0;
  for (const std::int64_t count : seen)
    sum += (static_cast<double>(count) - expected) * (static_cast<double>(count) - expected) /
           expected;
  return sum;
}

// Of 4 edges out of 8 there are 70 choices. Chi-square with 69 degrees of freedom is above 111 once
// in a thousand trials, and below 37 as often; seeds are fixed, so that it holds or does not.
TEST(SampleNeighbours, EveryChoiceOfEdgesIsAsLikely) {
  constexpr std::int64_t kTrials = 70'000;
  const PatternCase graph{"", 8, 8, Numbers(8, 3), {0, 1, 2, 3, 4, 5, 6, 7}};
  const Csr csr = graph.csr();
  std::map<Numbers, std::int64_t> seen;
  for (std::uint64_t batch = 0; batch < kTrials; ++batch)
    ++seen[numbers_of(
        sample_neighbours(csr.view(), Numbers{3}, {.fan_outs = {4}, .seed = 9, .batch = batch})
            .entry)];
  EXPECT_EQ(seen.size(), 70u);
  Numbers counts;
  for (const auto& [choice, count] : seen)
    counts.push_back(count);
  const double found = chi_square(counts, kTrials / 70.0);
  EXPECT_LT(found, 111);
  EXPECT_GT(found, 37);
}

// With 100 edges: few draws, which are looked through, and many, which a hash table has. Edges of a
// choice exclude each other, so that the sum is (1 - k / 100) · chi-square with 99 degrees of
// freedom, which is below 149 and above 60 but for twice in a thousand trials.
TEST(SampleNeighbours, EveryEdgeIsAsLikely) {
  PatternCase graph{"", 100, 100, Numbers(100, 42), Numbers(100)};
  std::iota(graph.column.begin(), graph.column.end(), 0);
  const Csr csr = graph.csr();
  for (const bool replace : {false, true}) {
    for (const std::int64_t fan_out : {1, 10, 32, 33, 90}) {
      Numbers counts(100);
      constexpr std::int64_t kTrials = 5000;
      for (std::uint64_t batch = 0; batch < kTrials; ++batch) {
        const NeighbourSample sample = sample_neighbours(
            csr.view(), Numbers{42},
            {.fan_outs = {fan_out}, .replace = replace, .seed = 4, .batch = batch});
        for (const std::int64_t e : numbers_of(sample.entry))
          ++counts[static_cast<std::size_t>(e)];
      }
      const double share = static_cast<double>(fan_out) / 100;
      const double found = chi_square(counts, kTrials * share) / (replace ? 1.0 : 1 - share);
      EXPECT_LT(found, 149) << fan_out << ' ' << replace;
      EXPECT_GT(found, 60) << fan_out << ' ' << replace;
    }
  }
}

TEST(SampleNeighbours, CarriesTheTypesOfEdges) {
  const PatternCase graph = square(50, 900, 3);
  Numbers types(900);
  for (std::size_t e = 0; e < types.size(); ++e)
    types[e] = static_cast<std::int64_t>(e % 7);
  const Csr csr = graph.csr();
  for (const Tensor& given : {i64(types), i32(types)}) {
    const NeighbourSample sample =
        sample_neighbours(csr.view(), Numbers{4, 0, 9}, {.fan_outs = {5, 5}}, given);
    ASSERT_EQ(sample.type.elements(), sample.entry.elements());
    for (std::int64_t e = 0; e < sample.entry.elements(); ++e)
      EXPECT_EQ(sample.type.data<std::int64_t>()[e], sample.entry.data<std::int64_t>()[e] % 7);
  }
  EXPECT_FALSE(sample_neighbours(csr.view(), Numbers{4}, {.fan_outs = {5}}).type.defined());
}

TEST(SampleNeighbours, RefusesWhatItCannotSample) {
  const Csr csr = square(5, 20, 1).csr();
  const Csr wide = random_pattern(5, 6, 20, 1).csr();
  const auto said = [&](const Csr& of, const Numbers& seeds, const Numbers& fan_outs,
                        const Tensor& type = {}) {
    return message_of([&] {
      sample_neighbours(of.view(), seeds, {.fan_outs = fan_outs},
                        type.defined() ? type.view() : ConstTensorView());
    });
  };
  EXPECT_EQ(said(csr, {0, 5}, {2}),
            "sample_neighbours: seeds[1] = 5 where there are 5: give numbers from 0 on");
  EXPECT_EQ(said(csr, {0, 1, -1}, {2}),
            "sample_neighbours: seeds[2] = -1 where there are 5: give numbers from 0 on");
  EXPECT_EQ(said(csr, {3, 1, 4, 1}, {2}),
            "sample_neighbours: seeds[3] = 1 stands at seeds[1] already: give each node once");
  EXPECT_EQ(said(csr, {0}, {}),
            "sample_neighbours: there are no fan-outs: give one for each hop, as {15, 10}");
  EXPECT_EQ(said(csr, {0}, {3, -2}),
            "sample_neighbours: fan_outs[1] = -2: give a number of edges, or -1 for all");
  EXPECT_EQ(said(wide, {0}, {3}),
            "sample_neighbours: the graph has 6 sources and 5 targets: give one whose sources and "
            "targets are the same nodes");
  EXPECT_EQ(
      said(csr, {0}, {3}, i64({1, 2})),
      "sample_neighbours: type is i64 [2] on cpu: give i32 or i64 [20] on the CPU, the type of "
      "each entry");
  const Csr dense = square(5, 100, 1).csr();
  const std::int64_t half = std::int64_t{1} << 30;
  EXPECT_EQ(message_of([&] {
              sample_neighbours(dense.view(), Numbers{0, 1}, {.fan_outs = {half}, .replace = true});
            }),
            "sample_neighbours: hop 0 of 2 nodes has 2147483648 entries: give fewer seeds or a "
            "smaller fan-out, for less than 2^31");
}

}   // namespace
}   // namespace pumice::test
