// A graph that cases of recorded_cases.hpp work on, made before the recording begins.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/edge_softmax.hpp>
#include <pumice/ops/part_products.hpp>
#include <pumice/ops/rgms.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/ops/typed_linear.hpp>

#include "ops/device_support.hpp"

namespace pumice::test {

/// As many nodes as there are rows, two edges to each and 300 more to the first, and values by
/// head.
struct RecordedGraph {
  static constexpr std::int64_t kHeads = 4;

  RecordedGraph(std::int64_t nodes, DType type, StreamView stream) {
    const std::int64_t entries = 2 * nodes + 300;
    Tensor to({entries}, DType::i64), from({entries}, DType::i64);
    for (std::int64_t e = 0; e < entries; ++e) {
      to.data<std::int64_t>()[e] = e < 2 * nodes ? e / 2 : 0;
      from.data<std::int64_t>()[e] = (e * 7 + 3) % nodes;
    }
    row = copy_to(stream, to);
    column = copy_to(stream, from);
    forward = Csr(nodes, nodes, row, column);
    back = transposed(forward.view(), stream);
    parts = formats::hyb(forward.view(), {.column_parts = 2, .widths = {1, 2}}, {}, stream);
    values = copy_to(stream, chance_tensor({entries, kHeads}, type, 21));
    grad_values = copy_to(stream, chance_tensor({entries, kHeads}, type, 22));
    scores = copy_to(stream, chance_tensor({nodes, kHeads}, type, 23));
    Tensor kind({entries}, DType::i64);
    for (std::int64_t e = 0; e < entries; ++e)
      kind.data<std::int64_t>()[e] = e % 3;
    typed = std::make_unique<TypedGraph>(nodes, nodes, 3, to, from, kind, stream);
    types.emplace(std::vector<std::int64_t>{0, nodes / 3, nodes / 3, nodes}, stream);
    weight = copy_to(stream, chance_tensor({3, 20, 20}, type, 24));
    attention = copy_to(stream, chance_tensor({kHeads, 20 / kHeads}, type, 25));
  }

  Tensor row, column;   // i64 [entries]
  Csr forward, back;
  Decomposed parts;
  Tensor values, grad_values;   // [entries, heads]
  Tensor scores;                // [nodes, heads]
  std::optional<TypedRows> types;
  std::unique_ptr<TypedGraph> typed;
  Tensor weight;      // [3 types, 20, 20]
  Tensor attention;   // [heads, 20 / heads]
};

}   // namespace pumice::test
