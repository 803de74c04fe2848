// Folders of edges that have types: knowledge graphs, as OpenKE, N-Triples and lists of numbers
// have them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/core/tensor.hpp>

namespace pumice {

/// Edges in the order of their file; those that repeat stand there as often.
struct TypedEdges {
  std::int64_t nodes = 0;
  std::int64_t relations = 0;
  Tensor edge_index;   // i64 [2, edges]: sources, then targets
  Tensor edge_type;    // i64 [edges]
  /// As the file writes them, "<http://…>" and "\"1994\"^^<…>", in the order in which they first
  /// appear; none where a file has numbers alone.
  std::vector<std::string> node_names;
  std::vector<std::string> relation_names;
};

/// What the folder holds: train2id.txt as OpenKE writes it, with valid2id.txt and test2id.txt,
/// whose nodes count and whose edges do not, entity2id.txt and relation2id.txt where they are; or
/// one file of N-Triples (.nt) or of numbers (.csv), which gzip may have compressed (.gz).
/// `part` "valid" and "test" are the edges of OpenKE's other files instead of those of "train".
/// UserError, naming file and line, for anything else.
TypedEdges read_typed_edges(const std::filesystem::path& folder, std::string_view part = "train");

/// The same of bytes; `name` is who is named.
///
/// N-Triples: subject, predicate, object and a full stop a line. Terms that are written alike are
/// one node; nodes and relations are numbered as they first appear, subjects before objects.
TypedEdges read_triples_from(std::span<const std::byte> bytes, std::string_view name);
/// Lines of `source, relation, target`, whole numbers from 0 on; of nodes and relations there are
/// as many as the largest number says.
TypedEdges read_numbered_triples_from(std::span<const std::byte> bytes, std::string_view name);
/// A line with their number, then lines of `source target relation`.
TypedEdges read_openke_from(std::span<const std::byte> bytes, std::string_view name);

/// Each edge, and behind all of them each backwards. Edges of relation r get 2r and backwards 2r +
/// 1; `relation_names` are those of the edges as they were.
TypedEdges with_inverses(const TypedEdges& edges);

}   // namespace pumice
