// Products of sparse matrices as problems, and the plan of each call.
#pragma once

#include <pumice/core/tensor.hpp>
#include <pumice/formats/decomposed.hpp>
#include <pumice/graphs/csr.hpp>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>

namespace pumice {

/// Of a product over `pattern`, which is the transpose for a gradient of features. Without lengths
/// of rows: who wants them calls with_lengths.
SparseProblem sparse_problem(SparseOperator op, SparseDirection direction, const CsrView& pattern,
                             DType dtype, std::int64_t channels, std::int64_t heads);

/// With the lengths of the rows, where the pattern is on the CPU; they are kept with it.
SparseProblem with_lengths(SparseProblem problem, const CsrView& pattern);

/// `given`, which is checked and not owned, or where it is null the plan that is chosen: by the
/// rules where a cut that was measured would have to wait for a device and cannot. It is logged,
/// told to this thread's PlanRecord, and noted for the tuner where that records calls.
SparsePlanPtr plan_of(const SparseProblem& problem, const CsrView& pattern, StreamView stream,
                      const SparsePlan* given);

/// What the plan's format makes of the pattern, where it lies; kept with it, where it has a place
/// for that. On a device it waits where it cuts.
std::shared_ptr<const Decomposed> cut_for(const SparsePlan& plan, const CsrView& pattern,
                                          StreamView stream = {});

}   // namespace pumice
