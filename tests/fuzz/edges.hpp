// What readers of typed edges promise.
#pragma once

#include <pumice/graphs/typed_edges.hpp>

#include "fuzz/target.hpp"

namespace pumice::fuzz {

inline void check_edges(const TypedEdges& edges) {
  const std::int64_t count = edges.edge_type.rows();
  if (edges.edge_index.shape() != Shape({2, count}) || edges.edge_type.shape() != Shape{count})
    found("edges of another shape");
  for (const std::int64_t node : edges.edge_index.span<std::int64_t>()) {
    if (node < 0 || node >= edges.nodes) found("an edge that leads nowhere");
  }
  for (const std::int64_t relation : edges.edge_type.span<std::int64_t>()) {
    if (relation < 0 || relation >= edges.relations) found("an edge of no relation");
  }
  const TypedEdges both = with_inverses(edges);
  if (both.edge_type.rows() != 2 * count || both.relations != 2 * edges.relations)
    found("edges without their inverses");
}

}   // namespace pumice::fuzz
