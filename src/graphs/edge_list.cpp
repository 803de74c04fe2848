#include "graphs/edge_list.hpp"

#include <algorithm>

namespace pumice {
namespace detail {

TypedEdges EdgeList::take() const {
  TypedEdges edges;
  edges.edge_index = Tensor({2, size()}, DType::i64);
  edges.edge_type = Tensor({size()}, DType::i64);
  const auto index = edges.edge_index.span<std::int64_t>();
  std::ranges::copy(source_, index.begin());
  std::ranges::copy(target_, index.begin() + size());
  std::ranges::copy(relation_, edges.edge_type.span<std::int64_t>().begin());
  return edges;
}

void count_numbers(TypedEdges& edges) {
  const auto index = edges.edge_index.span<std::int64_t>();
  const auto type = edges.edge_type.span<std::int64_t>();
  edges.nodes = index.empty() ? 0 : *std::ranges::max_element(index) + 1;
  edges.relations = type.empty() ? 0 : *std::ranges::max_element(type) + 1;
}

}   // namespace detail

TypedEdges with_inverses(const TypedEdges& edges) {
  const auto index = edges.edge_index.span<std::int64_t>();
  const auto type = edges.edge_type.span<std::int64_t>();
  const std::size_t count = type.size();
  detail::EdgeList both;
  for (std::size_t e = 0; e < count; ++e)
    both.add(index[e], index[count + e], 2 * type[e]);
  for (std::size_t e = 0; e < count; ++e)
    both.add(index[count + e], index[e], 2 * type[e] + 1);
  TypedEdges made = both.take();
  made.nodes = edges.nodes;
  made.relations = 2 * edges.relations;
  made.node_names = edges.node_names;
  made.relation_names = edges.relation_names;
  return made;
}

}   // namespace pumice
