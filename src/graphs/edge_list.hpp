// Edges as readers collect them.
#pragma once

#include <cstdint>
#include <vector>

#include <pumice/graphs/typed_edges.hpp>

namespace pumice::detail {

inline constexpr std::int64_t kMostNodes = 2'147'483'647;   // numbers of nodes are i32 in patterns
inline constexpr std::int64_t kMostRelations = 65'535;      // as in TypedGraph

class EdgeList {
 public:
  void add(std::int64_t source, std::int64_t target, std::int64_t relation) {
    source_.push_back(source);
    target_.push_back(target);
    relation_.push_back(relation);
  }
  std::int64_t size() const { return static_cast<std::int64_t>(relation_.size()); }
  /// Nodes and relations are 0 still.
  TypedEdges take() const;

 private:
  std::vector<std::int64_t> source_, target_, relation_;
};

/// As many nodes and relations as the largest numbers of its edges say.
void count_numbers(TypedEdges& edges);

}   // namespace pumice::detail
