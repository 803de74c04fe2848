// GatherReduce, the skeleton of products of sparse matrices: for every row of a pattern, the rows
// that its entries name, each times its weight, reduced to one.
#pragma once

#include <cstdint>

#include <pumice/core/tensor.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>

namespace pumice {

/// What a sum or mean of a row is added to.
struct RowAddends {
  ConstTensorView shift{};      // compute type [C], the same for every row; undefined: 0
  ConstTensorView residual{};   // storage type [rows, C], undefined: 0; it may be the output itself

  bool any() const { return shift.defined() || residual.defined(); }
};

struct GatherReduceArguments {
  CsrView pattern;
  /// [entries, heads] by the entries' numbers, storage type of the features; undefined: ones. Head
  /// h weighs channels [h · C / heads, (h + 1) · C / heads).
  ConstTensorView values{};
  ConstTensorView features;   // [pattern.columns, C]
  TensorView output;          // [pattern.rows, C], storage type; every row is written
  TensorView source{};        // max, min: i64 [pattern.rows, C], the number of the entry, or -1
  RowAddends added{};         // of sums and means
  RangeSchedule schedule{};
};

/// Runs on all threads; the bits of the result do not depend on their number. Sums run in the
/// compute type in the order of the entries, rounded once.
void gather_reduce(const GatherReduceArguments& arguments, EntryReduction reduction);

}   // namespace pumice
