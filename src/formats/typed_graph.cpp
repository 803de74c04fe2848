// Cuts typed edges by one sort of (type, target).
#include <pumice/formats/typed_graph.hpp>

#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/radix_sort.hpp>

#include "graphs/entry_numbers.hpp"

namespace pumice {
namespace {

std::int64_t number_at(ConstTensorView list, std::int64_t i) {
  return list.dtype() == DType::i64 ? list.data<std::int64_t>()[i]
                                    : std::int64_t{list.data<std::int32_t>()[i]};
}

void check_list(ConstTensorView list, std::int64_t size, std::int64_t limit, const char* name) {
  const bool fits = list.rank() == 1 && list.rows() == size &&
                    (list.dtype() == DType::i32 || list.dtype() == DType::i64) &&
                    list.device().kind == DeviceKind::cpu;
  PUMICE_EXPECTS(fits, "TypedGraph: ", name, " is ", name_of(list.dtype()), ' ',
                 to_string(list.shape()), " on ", to_string(list.device()),
                 ": give whole numbers, i32 or i64, [", size, "] on the CPU");
  with_numbers(list, [&](auto numbers) { check_numbers(numbers, limit, "TypedGraph", name); });
}

std::unique_ptr<Graph> graph_of(std::int64_t rows, std::int64_t columns,
                                const std::vector<std::int64_t>& row, ConstTensorView column,
                                StreamView stream) {
  const ConstTensorView rows_of(row.data(), DType::i64, {static_cast<std::int64_t>(row.size())});
  Csr csr(rows, columns, rows_of, column);
  if (stream.device.kind == DeviceKind::cuda) csr = copy_to(stream, csr.view());
  return std::make_unique<Graph>(std::move(csr), stream);
}

}   // namespace

TypedGraph::TypedGraph(std::int64_t rows, std::int64_t columns, std::int64_t types,
                       ConstTensorView row, ConstTensorView column, ConstTensorView type,
                       StreamView stream) {
  constexpr std::int64_t kMostTypes = 65'535;
  PUMICE_EXPECTS(types >= 0 && types <= kMostTypes, "TypedGraph: ", types, " types: give at most ",
                 kMostTypes);
  const std::int64_t edges = type.rank() == 1 ? type.rows() : 0;
  PUMICE_EXPECTS(edges <= std::numeric_limits<std::int32_t>::max(), "TypedGraph: ", edges,
                 " edges: give at most 2147483647");
  check_list(type, edges, types, "type");
  check_list(row, edges, rows, "row");
  check_list(column, edges, columns, "column");

  std::vector<std::uint64_t> key(static_cast<std::size_t>(edges));
  std::vector<std::int32_t> edge(static_cast<std::size_t>(edges));
  for (std::int64_t e = 0; e < edges; ++e) {
    key[static_cast<std::size_t>(e)] =
        static_cast<std::uint64_t>(number_at(type, e) * rows + number_at(row, e));
    edge[static_cast<std::size_t>(e)] = static_cast<std::int32_t>(e);
  }
  const auto bits = std::bit_width(static_cast<std::uint64_t>(types * rows));
  radix_sort_pairs(key, edge, static_cast<int>(bits));
  std::vector<std::int64_t> segment_of(static_cast<std::size_t>(edges)), target, begin(1);
  for (std::size_t i = 0; i < key.size(); ++i) {
    if (i == 0 || key[i] != key[i - 1]) {
      const auto found = static_cast<std::int64_t>(key[i]);
      while (static_cast<std::int64_t>(begin.size()) <= found / rows)
        begin.push_back(static_cast<std::int64_t>(target.size()));
      target.push_back(found % rows);
    }
    segment_of[static_cast<std::size_t>(edge[i])] = static_cast<std::int64_t>(target.size()) - 1;
  }
  const auto segments = static_cast<std::int64_t>(target.size());
  while (static_cast<std::int64_t>(begin.size()) <= types)
    begin.push_back(segments);

  std::vector<std::int64_t> own(target.size());
  for (std::size_t s = 0; s < own.size(); ++s)
    own[s] = static_cast<std::int64_t>(s);
  gather_ = graph_of(segments, columns, segment_of, column, stream);
  segments_ = std::make_unique<const TypedRows>(std::move(begin), stream);
  scatter_ = graph_of(rows, segments, target, {own.data(), DType::i64, {segments}}, stream);
}

TypedGraphView TypedGraph::view() const {
  return {.gather = gather_->view(), .segments = segments_.get(), .scatter = scatter_->view()};
}

TypedGraphView TypedGraph::view_both_ways() {
  gather_backwards_ = gather_->backwards();
  scatter_backwards_ = scatter_->backwards();
  TypedGraphView both = view();
  both.gather_backwards = gather_backwards_->view();
  both.scatter_backwards = scatter_backwards_->view();
  return both;
}

}   // namespace pumice
