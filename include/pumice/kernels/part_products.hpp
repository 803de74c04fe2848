// GatherReduce and EdgeMap over a pattern that was cut into parts, on the CPU: whatever the format,
// a row's entries are brought together from its lines and handed to the loops that a whole pattern
// has, so padding and holes are never read.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/formats/decomposed.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice {

struct PartReduceArguments {
  const Decomposed& parts;
  /// [entries, heads] by the entries' numbers, storage type of the features; undefined: ones. Head
  /// h weighs channels [h · C / heads, (h + 1) · C / heads).
  ConstTensorView values{};
  ConstTensorView features;   // [columns, C]
  TensorView output;          // [rows, C], storage type; every row is written
  TensorView source{};        // max, min: i64 [rows, C], the number of the entry, or -1
  RangeSchedule schedule{};
};

/// Runs on all threads; the bits of the result do not depend on their number. Sums run in the
/// compute type in the order of a row's lines, rounded once.
void gather_reduce(const PartReduceArguments& arguments, EntryReduction reduction);

struct PartDotArguments {
  const Decomposed& parts;
  ConstTensorView left;    // [rows, C]
  ConstTensorView right;   // [columns, C], of the same type
  TensorView output;       // [entries, heads] by the entries' numbers
  RangeSchedule schedule{};
};

/// output[number, h] = left[row] · right[column] over the channels of head h, for every entry. Runs
/// on all threads; the bits of the result do not depend on their number.
void edge_dot(const PartDotArguments& arguments);

}   // namespace pumice
