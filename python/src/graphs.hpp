// Graphs as Python holds them.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <pumice/formats/typed_rows.hpp>
#include <pumice/graphs/graph.hpp>
#include <pumice/kernels/gather_reduce.hpp>

#include "framework.hpp"

namespace pumice::python {

/// A graph, and the lock that its transpose is made under.
struct SharedGraph {
  Graph graph;
  std::mutex mutex{};
};

struct GraphHandle {
  std::shared_ptr<SharedGraph> shared;

  CsrView view() const { return shared->graph.view(); }
  /// For a call on `stream`. A call that has to wait gives the GIL away where it has it, since the
  /// one that it waits for may need it to allocate.
  std::shared_ptr<const Csr> backwards(StreamView stream) const;
};

/// The stream that its memory belongs to.
inline StreamView home_of(const GraphHandle& graph) {
  return graph.shared->graph.stream();
}

/// Rows that are grouped by type.
struct TypedRowsHandle {
  std::shared_ptr<const TypedRows> rows;
};

inline StreamView home_of(const TypedRowsHandle& types) {
  return types.rows->stream();
}

/// "sum", "mean", "max", "min"; UserError for others.
EntryReduction reduction_of(const std::string& name);

void bind_formats(nb::module_& module);
void bind_typed_rows(nb::module_& module);
void bind_typed_edges(nb::module_& module);
void bind_graphs(nb::module_& module);
void bind_samples(nb::module_& module);
void bind_edge_scores(nb::module_& module);

}   // namespace pumice::python
