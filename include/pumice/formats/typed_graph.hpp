// A graph whose edges have types, cut so that each type's matrix is multiplied with once for a
// target:
//
//   edges            segments: the edges of one type      targets
//   source ─┐        that lead to one target
//   source ─┼─ gather ──► segment of type 0 ──┐
//   source ─┘             segment of type 0 ──┼─ scatter ──► target
//                         segment of type 1 ──┘
#pragma once

#include <cstdint>
#include <memory>

#include <pumice/formats/typed_rows.hpp>
#include <pumice/graphs/graph.hpp>

namespace pumice {

/// Looks at a typed graph. Entries of `gather` have the numbers of the edges.
struct TypedGraphView {
  CsrView gather;                        // segments × sources
  const TypedRows* segments = nullptr;   // grouped by the type of their edges
  CsrView scatter;                       // targets × segments
  // Their transposes, which gradients go over; of size 0 where nobody asked for them.
  CsrView gather_backwards{};
  CsrView scatter_backwards{};
};

/// Owns one.
class TypedGraph {
 public:
  /// Of edges in any order: `row` (target), `column` (source) and `type` [edges], i32 or i64 on the
  /// CPU, where it is made, and copied to the device of `stream`. O(edges). UserError, naming entry
  /// and value, for a row, column or type that there is not.
  TypedGraph(std::int64_t rows, std::int64_t columns, std::int64_t types, ConstTensorView row,
             ConstTensorView column, ConstTensorView type, StreamView stream = {});

  std::int64_t rows() const { return scatter_->view().rows; }
  std::int64_t columns() const { return gather_->view().columns; }
  std::int64_t types() const { return segments_->types(); }
  StreamView stream() const { return segments_->stream(); }

  /// Without transposes. Valid as long as this.
  TypedGraphView view() const;
  /// With them; made when first asked for. For one thread at a time.
  TypedGraphView view_both_ways();

 private:
  std::unique_ptr<Graph> gather_;
  std::unique_ptr<const TypedRows> segments_;
  std::unique_ptr<Graph> scatter_;
  std::shared_ptr<const Csr> gather_backwards_, scatter_backwards_;
};

}   // namespace pumice
