// The formats that a pattern can be cut into: each is a PartShape or a list of them, and says which
// part takes which entry. They run where the pattern is, in O(entries + rows + columns +
// positions), and raise UserError for a `stream` of another device, a number out of range, and a
// format that would be nearly all padding. On a device they wait for it, since the sizes of parts
// are found there. Entries keep their numbers. Of a transpose:
// formats::...(transposed(pattern).view()).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <pumice/formats/decomposed.hpp>

namespace pumice::formats {

/// What an entry is, for who decides on its part.
struct Entry {
  std::int64_t row = 0;
  std::int64_t column = 0;
  std::int64_t number = 0;   // where its value stands
  std::int64_t place = 0;    // in the order of the pattern: row by row
};

/// The type of each edge, as a third axis before rows: lines are of one type each.
struct EdgeTypes {
  ConstTensorView type{};   // [entries] by the entries' numbers, i32 or i64
  std::int64_t count = 0;
};

/// The pattern as one part, with a line for each row.
Decomposed identity(const CsrView& pattern, StreamView stream = {});

/// Doubly compressed: only rows that have entries.
Decomposed dcsr(const CsrView& pattern, StreamView stream = {});

/// Slots of each row padded to a multiple.
Decomposed padded_csr(const CsrView& pattern, std::int64_t multiple, StreamView stream = {});

/// As many slots for every row that has entries: `width`, longer rows take several lines; 0: as
/// many as the longest row has entries.
Decomposed ell(const CsrView& pattern, std::int64_t width = 0, StreamView stream = {});

struct HybOptions {
  std::int64_t column_parts = 1;   // columns are cut into as many parts of equal width
  /// Ascending widths of ELL parts. A row is in the first that is as wide as it has entries in that
  /// part of the columns; longer ones take several lines of the last. Empty: 1, 2, 4, … up to the
  /// first that is at least the mean of rows that have entries.
  std::vector<std::int64_t> widths{};
};
/// hyb(c, k): parts in the order of column parts and, within, widths. With types, rows are those of
/// a type: three axes, as products with a matrix for each type take them.
Decomposed hyb(const CsrView& pattern, const HybOptions& options = {}, const EdgeTypes& types = {},
               StreamView stream = {});

/// Blocks of block_rows × block_columns, with a line for each row of blocks; columns of blocks
/// ascend. An entry that repeats has a block of its own at the same column.
Decomposed bsr(const CsrView& pattern, std::int64_t block_rows, std::int64_t block_columns,
               StreamView stream = {});

/// Doubly compressed: only rows of blocks that have entries.
Decomposed dbsr(const CsrView& pattern, std::int64_t block_rows, std::int64_t block_columns,
                StreamView stream = {});

/// Vectors of `rows` rows and one column, padded to groups of `group` columns.
Decomposed sr_bcrs(const CsrView& pattern, std::int64_t rows, std::int64_t group,
                   StreamView stream = {});

/// Type → row → column: doubly compressed rows of each type.
Decomposed csf(const CsrView& pattern, const EdgeTypes& types, StreamView stream = {});

/// Whole blocks, as masks of attention and other libraries' BSR have them: every position is an
/// entry, whose number is its place in [blocks, block_rows, block_columns]. block_row_begin:
/// [rows / block_rows + 1], block_column: [blocks], i32 or i64 on the CPU; rows and columns are
/// multiples.
Decomposed blocks(std::int64_t rows, std::int64_t columns, std::int64_t block_rows,
                  std::int64_t block_columns, ConstTensorView block_row_begin,
                  ConstTensorView block_column);

/// The same of a mask [block rows, block columns] of bytes, where not 0.
Decomposed block_mask(ConstTensorView mask, std::int64_t block_rows, std::int64_t block_columns);

/// Anybody's own: `part_of` says for each entry, row by row, which of `shapes` takes it. Of a
/// pattern on the CPU.
Decomposed decompose(const CsrView& pattern, std::span<const PartShape> shapes,
                     const std::function<std::int64_t(const Entry&)>& part_of,
                     const EdgeTypes& types = {});

/// The same of a list, where the pattern is: i64 [entries] row by row.
Decomposed decompose(const CsrView& pattern, std::span<const PartShape> shapes,
                     ConstTensorView part_of, const EdgeTypes& types = {}, StreamView stream = {});

/// Parts that somebody made on the CPU, which are validated.
Decomposed decompose(const CsrView& pattern, std::vector<Part> parts);

}   // namespace pumice::formats
