// The pattern of a sparse matrix, or the typed edges of a graph, from where commands name them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <pumice/core/tensor.hpp>

namespace pumice::cli {

struct EdgesInput {
  std::string name;   // of file or folder, printable
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  Tensor row{};      // i64 [entries]; of an edge, where it leads
  Tensor column{};   // i64 [entries]; of an edge, where it comes from
  // Of typed edges alone:
  std::int64_t relations = 0;
  Tensor type{};                               // i64 [entries]
  std::vector<std::string> relation_names{};   // or none

  std::int64_t entries() const { return row.rows(); }
  bool has_types() const { return type.defined(); }
};

/// A Matrix Market file, whose symmetric lines stand for both triangles; a safetensors file as
/// `pumice rgcn` takes it, of as many nodes as rows of features, or as edges name; or a folder as
/// pumice::read_typed_edges takes it. UserError for anything else.
EdgesInput read_edges(const std::filesystem::path& path);

/// Of i64 [2, edges], sources and targets, between `nodes`.
EdgesInput edges_of(std::string name, std::int64_t nodes, const Tensor& edge_index);

/// How many entries each row has.
std::vector<std::int64_t> row_lengths(const EdgesInput& edges);

/// The largest of some numbers; 0 of none.
std::int64_t longest(const std::vector<std::int64_t>& lengths);

}   // namespace pumice::cli
