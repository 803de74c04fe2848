// A pattern cut into parts of regular shape, whose entries keep their numbers: values, gradients
// and products of entries stand under the same numbers whatever a pattern is cut into.
//
//   part = lines, a line = slots, a slot = a block of positions, a position = an entry or a hole
//
//   row     column              entry (1 x 1 blocks, width 2)
//   [0]     [ 3,  5]            [ 0,  1]
//   [2]     [ 1, -1]            [ 4, -1]     -1: padding, which is never read
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/core/buffer.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/formats/part_table.hpp>
#include <pumice/graphs/csr.hpp>

namespace pumice {

/// A format as numbers: how the entries of a part are laid out.
struct PartShape {
  std::int64_t block_rows = 1;      // of a slot
  std::int64_t block_columns = 1;   // of a slot
  /// Slots of every line: what is longer takes several lines of the same rows. 0: each line has as
  /// many slots as it needs.
  std::int64_t width = 0;
  std::int64_t multiple = 1;   // without a width: slots of a line are padded to a multiple of it
  bool all_rows = false;       // rows without entries have a line too

  std::int64_t positions() const { return block_rows * block_columns; }   // of a slot
  friend bool operator==(const PartShape&, const PartShape&) = default;
};

/// Looks at a part; of one on a device only its sizes are for the host.
struct PartView {
  PartShape shape{};
  std::span<const std::int32_t> row{};          // [lines] line l: rows row[l] · block_rows and on
  std::span<const std::int64_t> slot_begin{};   // [lines + 1]; empty where there is a width
  std::span<const std::int32_t> column{};       // [slots] in blocks of columns; -1: padding
  /// [slots, block_rows, block_columns] numbers of entries, -1: a hole; empty: every position is an
  /// entry, and its place its number.
  std::span<const std::int64_t> entry{};
  std::span<const std::int64_t> type_begin{};   // [types + 1] lines of each type; empty: no types
  /// Slots are single entries, and only padding holds none; found out by Decomposed.
  bool is_single = false;

  std::int64_t lines() const { return static_cast<std::int64_t>(row.size()); }
  std::int64_t slots() const { return static_cast<std::int64_t>(column.size()); }
  std::int64_t first_slot(std::int64_t line) const {
    return slot_begin.empty() ? line * shape.width : slot_begin[static_cast<std::size_t>(line)];
  }
  std::int64_t end_slot(std::int64_t line) const { return first_slot(line + 1); }
  /// The number of the entry at a position, -1 for a hole.
  std::int64_t number_at(std::int64_t position) const {
    return entry.empty() ? position : entry[static_cast<std::size_t>(position)];
  }
};

/// Owns a part, or shares it.
struct Part {
  PartShape shape{};
  Tensor row;          // i32 [lines]
  Tensor slot_begin;   // i64 [lines + 1], or undefined
  Tensor column;       // i32 [slots]
  Tensor entry;        // i64 [slots · positions], or undefined
  Tensor type_begin;   // i64 [types + 1], or undefined

  /// Valid as long as this part.
  PartView view() const&;
  PartView view() const&& = delete;
};

/// A line that has a row, and which of its rows that is.
struct PartLine {
  std::int32_t part;
  std::int32_t row_of_block;
  std::int64_t line;
};

struct DecomposedLists {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t entries = 0;
  std::vector<Part> parts;
  Buffer<std::int64_t> row_begin;   // [rows + 1] entries before each row
  /// [entries] by number: the place of each entry in the order of the pattern. Empty: within a row
  /// the order is that of the numbers.
  Buffer<std::int64_t> place;
};

/// Owns what a pattern was cut into.
class Decomposed {
 public:
  Decomposed() = default;
  /// UserError where lists of a part do not fit each other, or a line is of no row; `validate`
  /// looks at the entries too. O(lines · block_rows + rows).
  explicit Decomposed(DecomposedLists lists);
  /// Of lists that fit each other, on a device; `table`: of parts whose slots are single entries.
  Decomposed(DecomposedLists lists, PartTable table);

  Device device() const { return stream().device; }
  /// The stream its memory is ordered by.
  StreamView stream() const { return lists_.row_begin.stream(); }
  std::int64_t rows() const { return lists_.rows; }
  std::int64_t columns() const { return lists_.columns; }
  std::int64_t entries() const { return lists_.entries; }
  const std::vector<Part>& parts() const { return lists_.parts; }
  /// Valid as long as this, as all that follows.
  std::span<const PartView> views() const { return views_; }
  std::span<const std::int64_t> row_begin() const { return list_of(lists_.row_begin); }
  std::span<const std::int64_t> place() const { return list_of(lists_.place); }
  /// What products on a device go over; without ranges on the CPU and for blocks of several
  /// positions.
  PartTableRef table() const;
  /// The lines that hold entries of a row, in the order of parts. On the CPU.
  std::span<const PartLine> lines_of(std::int64_t row) const {
    const std::int64_t begin = line_begin_[row];
    return {lines_.data() + begin, static_cast<std::size_t>(line_begin_[row + 1] - begin)};
  }

 private:
  /// On a device too, where nobody reads it here.
  static std::span<const std::int64_t> list_of(const Buffer<std::int64_t>& buffer) {
    return {buffer.data(), static_cast<std::size_t>(buffer.size())};
  }
  void list_lines();

  DecomposedLists lists_;
  std::vector<PartView> views_;
  Buffer<std::int64_t> line_begin_;   // [rows + 1]
  Buffer<PartLine> lines_;
  PartTable table_;
};

/// A copy of parts on the CPU where `stream` runs. Waits for it, and raises what went wrong there.
Decomposed copy_to(StreamView stream, const Decomposed& decomposed);

/// A copy on the CPU of parts on the device of `stream`. Waits for it, and raises what went wrong
/// there.
Decomposed copy_to_host(const Decomposed& decomposed, StreamView stream);

/// UserError, in the name of `op` and naming part, place and value, unless every entry stands in
/// just one position, in range, padding holds none and comes last in a line, and lines ascend by
/// row. O(positions). Of parts on a device a copy is looked at, which waits.
void validate(const Decomposed& decomposed, const char* op = "validate");

/// The same, and that every entry is where the pattern has it.
void validate(const Decomposed& decomposed, const CsrView& pattern, const char* op = "validate");

/// The pattern again, where the parts are; entries keep their numbers, and their order within a
/// row. O(positions + rows). On a device it waits, since it is made on the CPU.
Csr csr(const Decomposed& decomposed);

}   // namespace pumice
