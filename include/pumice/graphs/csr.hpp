// The pattern of a sparse matrix, row by row: which columns each row has. Values are apart, since
// many of them share a pattern: weights, attention, gradients. Of a graph, a row is a node and its
// entries are the edges that lead to it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include <pumice/shared/pattern_ref.h>
#include <pumice/core/buffer.hpp>
#include <pumice/core/device.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/graphs/kept_cuts.hpp>

namespace pumice {

/// Looks at a pattern (compressed sparse rows). Columns come in any order within a row, and repeat
/// where an entry stands twice.
struct CsrView {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::span<const std::int64_t> row_begin{};   // [rows + 1]: where the entries of each row begin
  std::span<const std::int32_t> column{};      // [entries]
  /// [entries] the number of each entry in what the pattern was made from, which is where its value
  /// stands; empty: its place.
  std::span<const std::int64_t> entry{};
  Device device{};   // on which the lists lie
  /// On a device: rows that are cut into parts, since one team of threads would be at them for
  /// long; without counts all rows stay whole.
  LongRowsRef long_rows{};
  /// On a device: rows in units of about as much work (see PatternRef); empty: one by one.
  std::span<const std::int32_t> unit_row{};
  /// Where what is cut of it for a plan is kept; null: it is cut anew for each product.
  KeptCuts* kept = nullptr;

  std::int64_t entries() const { return static_cast<std::int64_t>(column.size()); }
  std::int64_t begin_of(std::int64_t row) const { return row_begin[static_cast<std::size_t>(row)]; }
  std::int64_t end_of(std::int64_t row) const {
    return row_begin[static_cast<std::size_t>(row) + 1];
  }
  /// Where the value of the entry at `place` stands.
  std::int64_t number_of(std::int64_t place) const {
    return entry.empty() ? place : entry[static_cast<std::size_t>(place)];
  }
};

/// UserError, in the name of `op` and naming entry and value, unless the lists fit each other, lead
/// to columns that there are, and number the entries once each. Goes over all entries, which are on
/// the CPU.
void check_pattern(const CsrView& pattern, const char* op);

/// What a pattern consists of, wherever it lies.
struct PatternLists {
  Buffer<std::int64_t> row_begin;   // [rows + 1]
  Buffer<std::int32_t> column;      // [entries]
  Buffer<std::int64_t> entry;       // [entries], or empty: entries have the numbers of their places
  // On a device alone:
  Buffer<std::int32_t> unit_row{};   // [units + 1]
  Buffer<RowPart> part{};            // rows that are cut
  Buffer<LongRow> long_row{};
  Buffer<std::int32_t> long_counts{};   // [2] parts, rows; empty: there are none
  Buffer<std::uint32_t> arrived{};      // zeroed counters of LongRowsRef
};

/// What errors call the lists that a pattern is made of.
struct EntryNames {
  const char* op = "Csr";
  const char* row = "row";
  const char* column = "column";
};

/// Owns a pattern.
class Csr {
 public:
  Csr() = default;
  /// Of entries in any order: `row` and `column` [entries], i32 or i64. Those of a row keep their
  /// order, and their numbers are their places in these lists. O(rows + entries). UserError, naming
  /// entry and value, for a row or column that there is not; on a device, where all is enqueued on
  /// the stream of the lists, the next call that waits raises it.
  Csr(std::int64_t rows, std::int64_t columns, ConstTensorView row, ConstTensorView column,
      const EntryNames& names = {});
  /// Of lists that fit each other, on `device` (check_pattern looks).
  Csr(std::int64_t rows, std::int64_t columns, Device device, PatternLists lists)
      : rows_(rows), columns_(columns), device_(device), lists_(std::move(lists)) {}

  /// Valid as long as this pattern.
  CsrView view() const&;
  CsrView view() const&& = delete;

 private:
  std::int64_t rows_ = 0;
  std::int64_t columns_ = 0;
  Device device_{};
  PatternLists lists_;
  std::unique_ptr<KeptCuts> kept_ = std::make_unique<KeptCuts>();
};

/// Rows become columns. Entries keep their numbers, so that the same values belong to both; those
/// of a row come in the order of the rows they had. O(columns + entries). On a device it is
/// enqueued on `stream`, which is of the device of the pattern.
Csr transposed(const CsrView& pattern, StreamView stream = {});

/// A copy of a pattern on the CPU where `stream` runs, enqueued there; with the list of long rows,
/// where there are some.
Csr copy_to(StreamView stream, const CsrView& pattern);

/// A copy on the CPU of a pattern on the device of `stream`. Waits for it, and raises what went
/// wrong there.
Csr copy_to_host(const CsrView& pattern, StreamView stream);

}   // namespace pumice
