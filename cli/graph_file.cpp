#include "graph_file.hpp"

#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/safetensors.hpp>
#include <pumice/graphs/typed_edges.hpp>

#include "core/printable.hpp"
#include "tensor_file.hpp"

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

}   // namespace

GraphInput read_graph(const std::filesystem::path& path, std::int64_t relations) {
  std::error_code nothing;
  if (std::filesystem::is_directory(path, nothing)) return read_folder(path, relations);
  const SafetensorsFile file = SafetensorsFile::open(path);
  check_names(file, {"edge_index", "edge_type", "features"});
  GraphInput graph{.edge_index = whole_numbers(file, "edge_index", 2, "[2, edges]"),
                   .edge_type = whole_numbers(file, "edge_type", 1, "[edges]")};
  PUMICE_EXPECTS(
      graph.edge_index.extent(0) == 2 && graph.edge_index.extent(1) == graph.edge_type.rows(),
      file.name(), ": edge_index is ", to_string(graph.edge_index.shape()), " and edge_type ",
      to_string(graph.edge_type.shape()),
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
