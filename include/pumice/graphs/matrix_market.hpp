// Sparse matrices in Matrix Market files (.mtx), as the SuiteSparse collection has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include <pumice/core/tensor.hpp>

namespace pumice {

/// What a line away from the diagonal says of the place mirrored at it.
enum class MatrixSymmetry : unsigned char {
  general,          // nothing
  symmetric,        // the same value
  skew_symmetric,   // the negative value
};

/// The lines of a file, from 0 on.
struct MatrixLines {
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  MatrixSymmetry symmetry = MatrixSymmetry::general;
  Tensor row;      // i64 [lines]
  Tensor column;   // i64 [lines]
  Tensor value;    // f64 [lines]; 1 where the file has a pattern alone
};

/// Reads a coordinate file of real or whole numbers, or of a pattern. UserError, naming the line,
/// for anything else, and for a file that ends early.
MatrixLines read_matrix_market(const std::filesystem::path& path);
/// The same of bytes; `name` is who is named.
MatrixLines read_matrix_market_from(std::span<const std::byte> bytes, std::string_view name);

/// The entries that the lines stand for: those of a line follow each other, the one that is written
/// first.
struct MatrixEntries {
  Tensor row;      // i64 [entries]
  Tensor column;   // i64 [entries]
  Tensor line;     // i64 [entries]
  Tensor sign;     // f64 [entries]: 1, or -1 where the value is the negative of the line's
};
MatrixEntries entries_of(const MatrixLines& lines);

}   // namespace pumice
