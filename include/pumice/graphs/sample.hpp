// Neighbour sampling: the part of a large graph that a batch of its nodes takes to train on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice {

struct SampleOptions {
  /// For each hop, that of the seeds first: how many of the edges that lead to a node are taken.
  /// -1: all.
  std::vector<std::int64_t> fan_outs{};
  /// Whether an edge may be drawn several times; then a node with any edges has exactly as many
  /// as the fan-out says.
  bool replace = false;
  /// Draws depend on these two, the hop and the node, and on nothing else.
  std::uint64_t seed = 0;
  std::uint64_t batch = 0;
};

/// What was sampled: nodes renumbered in the order in which they were found, and for each of them
/// but those of the last hop the edges that were drawn. Each node is drawn for once, in the hop
/// after the one that found it, so the block of fewer hops is the beginning of the one of more.
struct NeighbourSample {
  Tensor node;    // i64 [nodes] their numbers in the graph; the seeds first, as they were given
  Tensor entry;   // i64 [entries] the numbers of the drawn edges in the graph
  Tensor type;    // i64 [entries] the types of these edges; undefined where none were given
  Buffer<std::int64_t> row_begin;             // [nodes that were drawn for + 1]
  Buffer<std::int32_t> column;                // [entries] numbers in `node`
  std::vector<std::int64_t> nodes_within{};   // [hops + 1] nodes at most so many hops from a seed

  std::size_t hops() const { return nodes_within.size() - 1; }
  /// The edges of a layer whose outputs are the nodes within `hop` hops and whose inputs those
  /// within one more: rows are the first of the columns. Its entries are the first of `entry`. A
  /// network of L layers goes from block(L - 1) to block(0). Valid as long as the sample.
  CsrView block(std::size_t hop) const&;
  CsrView block(std::size_t hop) const&& = delete;
};

/// Samples edges that lead to the seeds, to the nodes where these come from, and so on. Within a
/// node the drawn edges stand in the order of the graph. Without replacement the edges of a node
/// are a uniform choice of min(fan-out, its edges). The same bits for any number of threads.
/// O(seeds + drawn entries) without replacement or with, whatever the size of the graph.
///
/// `graph`: on the CPU, square, and as check_pattern wants it, which is not looked at here.
/// `seeds`: different numbers of rows. `type`: i32 or i64 [entries of the graph] by the number of
/// the entry, or undefined. UserError, naming place and value, for a seed that is no row or stands
/// twice, for fan-outs below -1 or none, and for samples of 2^31 entries and more in one hop.
NeighbourSample sample_neighbours(const CsrView& graph, std::span<const std::int64_t> seeds,
                                  const SampleOptions& options, ConstTensorView type = {});

}   // namespace pumice
