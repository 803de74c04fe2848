// Typed edges that commands take from a safetensors file or from a folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

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

/// Of a safetensors file with `edge_index`, `edge_type` and perhaps `features`; or of a folder as
/// pumice::read_typed_edges takes it, whose edges are taken backwards too where `relations` are
/// twice those of the folder. UserError for anything else.
GraphInput read_graph(const std::filesystem::path& path, std::int64_t relations);

}   // namespace pumice::cli
