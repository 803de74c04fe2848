// Graphs that are generated from a seed, for benchmarks, examples and tests: the same edges on
// every machine and for any number of threads.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/tensor.hpp>

namespace pumice {

struct PowerLawOptions {
  std::int64_t nodes = 0;   // 1 to 2^31 - 1, or 0 without edges
  std::int64_t edges = 0;
  std::uint64_t seed = 0;
  /// How many edges lead to a node is proportional to a Pareto number of this exponent, at most
  /// nodes / 50; the smaller, the longer the longest row.
  double target_exponent = 1.5;
  /// Edges come from node p[x], p a random order, x a Lomax number of this exponent times
  /// nodes / 50, at most the last.
  double source_exponent = 1.2;
};

/// i64 [2, edges], sources and targets, in ascending order of targets; edges may repeat. A few
/// nodes have much of both.
Tensor power_law_edges(const PowerLawOptions& options);

/// What halves of the rows and columns of the adjacency matrix get in each of `scale` steps; the
/// rest is that of both second halves.
struct RmatShares {
  double first_first = 0.57;
  double first_second = 0.19;   // source in the first half, target in the second
  double second_first = 0.19;
};

/// R-MAT (Chakrabarti, Zhan, Faloutsos 2004): i64 [2, edges], sources and targets of 2^scale nodes,
/// scale 0 to 30, in no order; edges may repeat. The shares are those of Graph500.
Tensor rmat_edges(int scale, std::int64_t edges, std::uint64_t seed, const RmatShares& shares = {});

/// A grid of nodes in 1 to 8 dimensions, the last axis fastest, with an edge in both directions
/// between neighbours along an axis: i64 [2, edges], in ascending order of targets, then of
/// sources. `wraps`: the ends of an axis of 3 nodes and more are neighbours too.
Tensor grid_edges(std::span<const std::int64_t> extents, bool wraps = false);

}   // namespace pumice
