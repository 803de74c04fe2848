// Products of a sparse matrix and features, and their gradients: what message passing on graphs is
// made of. They run where the pattern is, and all tensors lie there; on a device they are enqueued
// on the stream of the features, in f32, f16 or bf16.
//
// All of them run by a plan (pumice/plan/choose_sparse.hpp): `plan`, which has to fit, or where it
// is null the one that is chosen. What a plan has a pattern cut into is kept with that pattern.
#pragma once

#include <pumice/core/results.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/kernels/gather_reduce.hpp>
#include <pumice/plan/sparse_plan.hpp>

namespace pumice {

struct SpmmResult {
  Tensor output;   // [rows, C]
  Tensor source;   // max, min: i64 [rows, C], the number of the entry that was picked, -1 for none;
                   // undefined for the others
};
struct SpmmPlaces {
  Place output{};
  Place source{};
};

/// output[r] = the sum, mean, max or min of value[e] · features[column of e] over the entries of
/// row r, 0 for a row without any. features: [pattern.columns, C] of f64, f32, f16 or bf16; sums
/// run in float (double for f64) and are rounded once. values: [entries] or [entries, heads] of
/// that type, by the entries' numbers; undefined: ones. Head h weighs channels [h · C / heads, (h +
/// 1) · C / heads). Entries that repeat count each. UserError names the argument that does not fit;
/// of the pattern only its size is looked at (check_pattern goes over all of it). What is `added`
/// to every row, of sum and mean, costs no further pass over the output; such products go over rows
/// as they lie, whatever was tuned.
SpmmResult spmm(const CsrView& pattern, ConstTensorView values, ConstTensorView features,
                EntryReduction reduction = EntryReduction::sum, const SpmmPlaces& places = {},
                const SparsePlan* plan = nullptr, const RowAddends& added = {});

/// [columns of the forward pattern, C]: the gradient of its features. `backwards` is the transpose
/// of that pattern; `pattern`, the forward one, says for mean how many entries a row has; `source`
/// is what spmm returned; `added` is as there, to [columns, C].
Tensor spmm_features_gradient(const CsrView& pattern, const CsrView& backwards,
                              ConstTensorView values, ConstTensorView grad_output,
                              ConstTensorView source = {},
                              EntryReduction reduction = EntryReduction::sum,
                              const Place& place = {}, const SparsePlan* plan = nullptr,
                              const RowAddends& added = {});

/// [entries, heads] by the entries' numbers: the gradient of the values.
Tensor spmm_values_gradient(const CsrView& pattern, ConstTensorView features,
                            ConstTensorView grad_output, std::int64_t heads = 1,
                            ConstTensorView source = {},
                            EntryReduction reduction = EntryReduction::sum, const Place& place = {},
                            const SparsePlan* plan = nullptr);

/// [entries, heads] by the entries' numbers: left[row] · right[column] over the channels of each
/// head. left: [pattern.rows, C], right: [pattern.columns, C] of one type.
Tensor sddmm(const CsrView& pattern, ConstTensorView left, ConstTensorView right,
             std::int64_t heads = 1, const Place& place = {}, const SparsePlan* plan = nullptr);

}   // namespace pumice
