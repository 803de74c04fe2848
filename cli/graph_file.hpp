// Typed edges that commands take from a safetensors file or from a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <pumice/core/tensor.hpp>

namespace pumice::cli {

struct GraphInput {
  Tensor edge_index;   // i64 [2, edges]: sources, then targets
  Tensor edge_type;    // i64 [edges]
  Tensor features{};   // [nodes, C_in], or undefined
  /// What the folder has; of a file nobody says it.
  std::optional<std::int64_t> nodes{};
  bool has_inverses = false;   // edges backwards, which stand in no file
};

/// Of a safetensors file with `edge_index`, perhaps `edge_type`, which is undefined else, and
/// perhaps `features`. UserError for anything else.
GraphInput read_graph_file(const std::filesystem::path& path);

/// UserError, naming the file, the tensor, the place and the value, unless edges are between so
/// many nodes. `why_so_many`: after their number, or empty.
void check_nodes(const std::string& file, const Tensor& edge_index, std::int64_t nodes,
                 const std::string& why_so_many = {});
/// The same of types and relations.
void check_relations(const std::string& file, const Tensor& edge_type, std::int64_t relations);

/// Of a safetensors file with `edge_index`, `edge_type` and perhaps `features`; or of a folder as
/// pumice::read_typed_edges takes it, whose edges are taken backwards too where `relations` are
/// twice those of the folder. UserError for anything else.
GraphInput read_graph(const std::filesystem::path& path, std::int64_t relations);

}   // namespace pumice::cli
