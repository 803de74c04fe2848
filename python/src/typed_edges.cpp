// Folders of typed edges.
#include <filesystem>

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <pumice/graphs/typed_edges.hpp>

#include "arguments.hpp"
#include "graphs.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

nb::dict read(const std::filesystem::path& folder, bool inverses, const std::string& part) {
  const TypedEdges edges = [&] {
    const GilReleased released;
    const TypedEdges read = read_typed_edges(folder, part);
    return inverses ? with_inverses(read) : read;
  }();
  nb::dict result;
  result["edge_index"] = share_with_numpy(edges.edge_index);
  result["edge_type"] = share_with_numpy(edges.edge_type);
  result["nodes"] = edges.nodes;
  result["relations"] = edges.relations;
  // Literals may hold bytes that are no UTF-8.
  const auto texts = [](const std::vector<std::string>& names) {
    nb::list list;
    for (const std::string& name : names)
      list.append(nb::bytes(name.data(), name.size()).attr("decode")("utf-8", "surrogateescape"));
    return list;
  };
  result["node_names"] = texts(edges.node_names);
  result["relation_names"] = texts(edges.relation_names);
  return result;
}

}   // namespace

void bind_typed_edges(nb::module_& module) {
  define(module, "read_typed_edges", &read, "folder"_a, "inverses"_a, "part"_a = "train",
         "Edges, their numbers and names, by name; with `inverses` each backwards too.");
}

}   // namespace pumice::python
