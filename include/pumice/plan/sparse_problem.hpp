// What a product of a sparse matrix is, without its data: all that its plan may depend on.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <pumice/core/dtype.hpp>
#include <pumice/graphs/row_lengths.hpp>

namespace pumice {

/// What becomes of the entries of a row. A row without entries is 0.
enum class EntryReduction : unsigned char {
  sum,
  mean,   // the sum over the number of entries, however they are weighted
  max,    // of weight · feature, channel by channel; of equals the first, a NaN before any number
  min,
};

enum class SparseOperator : unsigned char {
  spmm,          // rows of features, weighted and reduced
  sddmm,         // a product of rows for each entry
  edge_scores,   // a score of additive attention for each entry
};

/// Of the product that runs: the gradient of features goes over the transpose, whose rows, columns
/// and lengths are those of its problem; that of values goes over the pattern.
enum class SparseDirection : unsigned char { forward, features_gradient, values_gradient };

std::string_view name_of(EntryReduction reduction);
std::string_view name_of(SparseOperator op);
std::string_view name_of(SparseDirection direction);
/// "spmm", "sddmm", "edge_scores"; UserError for others.
SparseOperator parse_sparse_operator(std::string_view name);
/// "sum", "mean", "max", "min"; UserError for others.
EntryReduction parse_entry_reduction(std::string_view name);

struct SparseProblem {
  SparseOperator op = SparseOperator::spmm;
  SparseDirection direction = SparseDirection::forward;
  EntryReduction reduction = EntryReduction::sum;   // of spmm
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;
  std::int64_t channels = 0;   // of features, over all heads
  std::int64_t heads = 1;
  DType dtype = DType::f32;
  /// Of spmm: entries have values. Of edge_scores: they have rows, which are added.
  bool weighted = false;
  /// How long rows are. Null where nobody asked, and where the host does not know, as of a pattern
  /// that was made on a device: predictions take all rows for as long as the mean then.
  std::shared_ptr<const RowLengths> lengths{};

  /// A number is made for each entry, not a row for each row.
  bool maps_entries() const {
    return op != SparseOperator::spmm || direction == SparseDirection::values_gradient;
  }
  /// An entry is picked for each channel of a row.
  bool picks() const {
    return reduction == EntryReduction::max || reduction == EntryReduction::min;
  }
  double entries_per_row() const;
  /// But for what `lengths` points to.
  friend bool operator==(const SparseProblem&, const SparseProblem&) = default;
};

/// All but rows, columns, entries and their lengths, in words that stay the same from version to
/// version: "spmm forward sum f32 channels 128 weighted". What measured plans are kept under,
/// beside buckets of those numbers.
std::string to_text(const SparseProblem& problem);

}   // namespace pumice
