#include "graph_file.hpp"

#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/graphs/typed_edges.hpp>

#include "core/printable.hpp"
#include "tensor_file.hpp"
#include "terminal.hpp"

namespace pumice::cli {
namespace {

GraphInput read_folder(const std::filesystem::path& path, std::int64_t relations) {
  TypedEdges edges = read_typed_edges(path);
  const bool doubled = relations == 2 * edges.relations;
  PUMICE_EXPECTS(doubled || relations == edges.relations, printable_path(path), ": has ",
                 edges.relations, " relations, and the network ", relations,
                 "; it must have as many, or twice as many, where edges are taken backwards too");
  if (doubled) edges = with_inverses(edges);
  return {.edge_index = std::move(edges.edge_index),
          .edge_type = std::move(edges.edge_type),
          .nodes = edges.nodes,
          .has_inverses = doubled};
}

Tensor whole_numbers(const SafetensorsFile& file, const char* name, int rank, const char* shape) {
  PUMICE_EXPECTS(file.contains(name), file.name(), ": tensor \"", name, "\" is missing");
  Tensor tensor = file.get(name);
  PUMICE_EXPECTS(tensor.dtype() == DType::i64 && tensor.shape().rank() == rank, file.name(), ": ",
                 name, " is ", name_of(tensor.dtype()), ' ', to_string(tensor.shape()), "; i64 ",
                 shape, " is needed");
  return tensor;
}

std::string there_are(std::int64_t number, const char* what) {
  return (number == 1 ? "there is " : "there are ") + counted(number, what);
}

std::string place(std::int64_t at) {
  return "[" + std::to_string(at) + "]";
}

}   // namespace

void check_nodes(const std::string& file, const Tensor& edge_index, std::int64_t nodes,
                 const std::string& why_so_many) {
  const std::int64_t edges = edge_index.extent(1);
  for (std::int64_t at = 0; at < 2 * edges; ++at) {
    const std::int64_t node = edge_index.data<std::int64_t>()[at];
    PUMICE_EXPECTS(node >= 0 && node < nodes, file, ": edge_index", place(at / edges),
                   place(at % edges), " = ", node, " where ", there_are(nodes, "node"), why_so_many,
                   "; give numbers from 0 on");
  }
}

void check_relations(const std::string& file, const Tensor& edge_type, std::int64_t relations) {
  for (std::int64_t at = 0; at < edge_type.rows(); ++at) {
    const std::int64_t relation = edge_type.data<std::int64_t>()[at];
    PUMICE_EXPECTS(relation >= 0 && relation < relations, file, ": edge_type", place(at), " = ",
                   relation, " where ", there_are(relations, "relation"),
                   "; give numbers from 0 on");
  }
}

GraphInput read_graph(const std::filesystem::path& path, std::int64_t relations) {
  std::error_code nothing;
  if (std::filesystem::is_directory(path, nothing)) return read_folder(path, relations);
  GraphInput graph = read_graph_file(path);
  PUMICE_EXPECTS(graph.edge_type.defined(), printable_path(path),
                 ": tensor \"edge_type\" is missing");
  check_relations(printable_path(path), graph.edge_type, relations);
  return graph;
}

GraphInput read_graph_file(const std::filesystem::path& path) {
  const SafetensorsFile file = SafetensorsFile::open(path);
  check_names(file, {"edge_index", "edge_type", "features"});
  GraphInput graph{.edge_index = whole_numbers(file, "edge_index", 2, "[2, edges]"),
                   .edge_type = {}};
  if (file.contains("edge_type")) graph.edge_type = whole_numbers(file, "edge_type", 1, "[edges]");
  const bool has_types = graph.edge_type.defined();
  PUMICE_EXPECTS(graph.edge_index.extent(0) == 2 &&
                     (!has_types || graph.edge_index.extent(1) == graph.edge_type.rows()),
                 file.name(), ": edge_index is ", to_string(graph.edge_index.shape()),
                 has_types ? " and edge_type " + to_string(graph.edge_type.shape()) : "",
                 "; [2, edges], sources and targets, and [edges] are needed");
  if (!file.contains("features")) return graph;
  graph.features = file.get("features");
  PUMICE_EXPECTS(is_floating(graph.features.dtype()) && graph.features.shape().rank() == 2,
                 file.name(), ": features is ", name_of(graph.features.dtype()), ' ',
                 to_string(graph.features.shape()),
                 "; a floating type and [nodes, C_in] are needed");
  return graph;
}

}   // namespace pumice::cli
