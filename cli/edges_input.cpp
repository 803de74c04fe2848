// Matrices and folders become two lists, rows and columns.
#include "edges_input.hpp"

#include <algorithm>
#include <cstddef>
#include <span>
#include <system_error>
#include <utility>

#include <pumice/graphs/matrix_market.hpp>
#include <pumice/graphs/typed_edges.hpp>

#include "core/printable.hpp"
#include "graph_file.hpp"

namespace pumice::cli {
namespace {

namespace fs = std::filesystem;

Tensor list_of(const Tensor& edge_index, std::int64_t row) {
  const auto edges = static_cast<std::size_t>(edge_index.extent(1));
  const std::span<const std::int64_t> all = edge_index.span<std::int64_t>();
  return Tensor::from(all.subspan(static_cast<std::size_t>(row) * edges, edges),
                      {edge_index.extent(1)});
}

/// "m.mtx" of a/m.mtx, "aifb" of a/aifb/.
std::string last_name(const fs::path& path) {
  const fs::path whole = path.has_filename() ? path : path.parent_path();
  return printable(whole.filename().string());
}

/// One more than the largest, 0 of none.
std::int64_t count_of(const Tensor& numbers) {
  const std::span<const std::int64_t> all = numbers.span<std::int64_t>();
  return all.empty() ? 0 : std::max<std::int64_t>(std::ranges::max(all), -1) + 1;
}

EdgesInput edges_of_file(const fs::path& path) {
  GraphInput graph = read_graph_file(path);
  const std::int64_t nodes =
      graph.features.defined() ? graph.features.rows() : count_of(graph.edge_index);
  check_nodes(printable_path(path), graph.edge_index, nodes);
  EdgesInput edges = edges_of(last_name(path), nodes, graph.edge_index);
  if (!graph.edge_type.defined()) return edges;
  edges.relations = count_of(graph.edge_type);
  check_relations(printable_path(path), graph.edge_type, edges.relations);
  edges.type = std::move(graph.edge_type);
  return edges;
}

}   // namespace

EdgesInput edges_of(std::string name, std::int64_t nodes, const Tensor& edge_index) {
  return {.name = std::move(name),
          .rows = nodes,
          .columns = nodes,
          .row = list_of(edge_index, 1),
          .column = list_of(edge_index, 0)};
}

EdgesInput read_edges(const fs::path& path) {
  std::error_code nothing;
  if (fs::is_directory(path, nothing)) {
    TypedEdges read = read_typed_edges(path);
    EdgesInput edges = edges_of(last_name(path), read.nodes, read.edge_index);
    edges.relations = read.relations;
    edges.type = std::move(read.edge_type);
    edges.relation_names = std::move(read.relation_names);
    return edges;
  }
  if (path.extension() == ".safetensors") return edges_of_file(path);
  const MatrixLines lines = read_matrix_market(path);
  MatrixEntries entries = entries_of(lines);
  return {.name = last_name(path),
          .rows = lines.rows,
          .columns = lines.columns,
          .row = std::move(entries.row),
          .column = std::move(entries.column)};
}

std::vector<std::int64_t> row_lengths(const EdgesInput& edges) {
  std::vector<std::int64_t> lengths(static_cast<std::size_t>(edges.rows));
  for (const std::int64_t row : edges.row.span<std::int64_t>())
    ++lengths[static_cast<std::size_t>(row)];
  return lengths;
}

std::int64_t longest(const std::vector<std::int64_t>& lengths) {
  return lengths.empty() ? 0 : *std::ranges::max_element(lengths);
}

}   // namespace pumice::cli
