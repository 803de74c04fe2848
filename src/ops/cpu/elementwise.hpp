// Elementwise loops on the CPU. Arguments are checked by the caller.
#pragma once

#include <span>

#include <pumice/core/tensor.hpp>

namespace pumice::cpu {

enum class Binary : unsigned char { add, subtract, multiply };
void combine(ConstTensorView left, ConstTensorView right, Binary operation, TensorView output);
void scale(ConstTensorView features, double factor, TensorView output);
void add_in_place(TensorView total, ConstTensorView term);

/// A piece of columns of a wider matrix and the narrow matrix it is copied to or from.
struct ColumnPart {
  std::byte* narrow = nullptr;
  const std::byte* narrow_const = nullptr;
  std::size_t bytes = 0;    // of one row
  std::size_t offset = 0;   // in the wide row
};
void join_columns(std::span<const ColumnPart> parts, std::int64_t rows, std::size_t wide_bytes,
                  std::byte* wide);
void cut_columns(std::span<const ColumnPart> parts, std::int64_t rows, std::size_t wide_bytes,
                 const std::byte* wide);

/// left_row, right_row: i32, row of the union for each row of a side.
void union_add(ConstTensorView left, ConstTensorView left_row, ConstTensorView right,
               ConstTensorView right_row, TensorView output);
void union_concatenate(ConstTensorView left, ConstTensorView left_row, ConstTensorView right,
                       ConstTensorView right_row, TensorView output);
/// part[i] = columns [first, first + C) of wide[rows[i]].
void take_columns(ConstTensorView wide, ConstTensorView rows, std::int64_t first, TensorView part);

}   // namespace pumice::cpu
