// Checks products of sparse matrices and hands them to their skeletons.
#include <pumice/ops/spmm.hpp>

#include <algorithm>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/kernels/edge_map.hpp>
#include <pumice/kernels/part_products.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "ops/cpu/picked_entries.hpp"
#include "ops/cuda/part_products.hpp"
#include "ops/cuda/sparse_products.hpp"
#include "ops/pattern_checks.hpp"
#include "ops/sparse_calls.hpp"

namespace pumice {
namespace {

/// Undefined for sum and mean, which read none.
ConstTensorView checked_source(ConstTensorView source, const CsrView& pattern,
                               ConstTensorView grad_output, EntryReduction reduction,
                               const char* op) {
  if (!checks::picks(reduction)) return {};
  PUMICE_EXPECTS(
      source.defined() && source.dtype() == DType::i64 && source.shape() == grad_output.shape(), op,
      ": source is ", source.defined() ? to_string(source.shape()) : "undefined",
      " for a gradient of ", to_string(grad_output.shape()),
      ": give what spmm returned for max or min");
  checks::lies_with(source, pattern, op, "source");
  return source;
}

/// Rows over the number of their entries.
Tensor averaged(const CsrView& pattern, ConstTensorView grad_output) {
  constexpr std::int64_t kRowsOfTask = 256;
  Tensor result(grad_output.shape(), grad_output.dtype());
  const std::int64_t channels = grad_output.extent(1);
  dispatch_floating(grad_output.dtype(), "spmm_features_gradient", [&](auto zero) {
    using S = decltype(zero);
    using T = compute_t<S>;
    parallel_for(pattern.rows, kRowsOfTask, [&](std::int64_t first, std::int64_t last) {
      for (std::int64_t row = first; row < last; ++row) {
        const auto entries =
            static_cast<T>(std::max<std::int64_t>(pattern.end_of(row) - pattern.begin_of(row), 1));
        const S* from = grad_output.data<S>() + row * channels;
        S* to = result.data<S>() + row * channels;
        for (std::int64_t c = 0; c < channels; ++c)
          to[c] = narrow<S>(widen(from[c]) / entries);
      }
    });
  });
  return result;
}

/// Which is not looked at on a device.
RangeSchedule ranges_of(const SparsePlan& plan) {
  return plan.ranges.value_or(RangeSchedule{});
}

const TeamSchedule* teams_of(const SparsePlan& plan) {
  return plan.teams ? &*plan.teams : nullptr;
}

/// Over what the plan has the pattern cut into.
void gather(const GatherReduceArguments& arguments, EntryReduction reduction,
            const SparsePlan& plan) {
  const bool on_device = checks::is_on_device(arguments.pattern);
  if (plan.format == SparseFormat::csr)
    return on_device ? cuda::spmm(arguments, reduction, *plan.teams)
                     : gather_reduce(arguments, reduction);
  const std::shared_ptr<const Decomposed> parts =
      cut_for(plan, arguments.pattern, arguments.features.stream());
  const PartReduceArguments over_parts{.parts = *parts,
                                       .values = arguments.values,
                                       .features = arguments.features,
                                       .output = arguments.output,
                                       .source = arguments.source,
                                       .schedule = arguments.schedule};
  on_device ? cuda::spmm(over_parts, reduction, teams_of(plan))
            : gather_reduce(over_parts, reduction);
}

/// Dot products, likewise.
void multiply(const EdgeMapArguments& arguments, const SparsePlan& plan) {
  const bool on_device = checks::is_on_device(arguments.pattern);
  if (plan.format == SparseFormat::csr)
    return on_device ? cuda::sddmm(arguments.pattern, arguments.left, arguments.right,
                                   arguments.output, *plan.teams)
                     : edge_map(arguments);
  const std::shared_ptr<const Decomposed> parts =
      cut_for(plan, arguments.pattern, arguments.left.stream());
  const PartDotArguments over_parts{.parts = *parts,
                                    .left = arguments.left,
                                    .right = arguments.right,
                                    .output = arguments.output,
                                    .schedule = arguments.schedule};
  on_device ? cuda::sddmm(over_parts, teams_of(plan)) : edge_dot(over_parts);
}

SparseProblem problem_of(SparseDirection direction, const CsrView& pattern, ConstTensorView rows,
                         std::int64_t heads, bool weighted, EntryReduction reduction) {
  SparseProblem problem =
      sparse_problem(SparseOperator::spmm, direction, pattern, rows.dtype(), rows.extent(1), heads);
  problem.reduction = reduction;
  problem.weighted = weighted;
  return problem;
}

/// To rows [rows, channels] of `pattern`.
void check_added(const RowAddends& added, const CsrView& pattern, ConstTensorView features,
                 EntryReduction reduction, const SparsePlan* plan, const char* op) {
  if (!added.any()) return;
  PUMICE_EXPECTS(!checks::picks(reduction), op,
                 ": something is added to the rows of a maximum or minimum: add it to the result");
  PUMICE_EXPECTS(plan == nullptr || plan->format == SparseFormat::csr, op,
                 ": something is added to rows that a plan has cut into parts: give a plan of csr, "
                 "or none");
  checks::parameter(added.shift, features.extent(1), features.dtype(), op, "added.shift");
  if (added.shift.defined()) checks::lies_with(added.shift, pattern, op, "added.shift");
  if (!added.residual.defined()) return;
  checks::rows_of(added.residual, pattern, pattern.rows, op, "added.residual", "rows");
  checks::same_dtype(added.residual, features.dtype(), op, "added.residual", "features");
  checks::extent(added.residual, 1, features.extent(1), op, "added.residual",
                 "the channels of the features");
}

/// `planned`, or rows as they lie, which sums are added to.
SparsePlanPtr fitting(SparsePlanPtr planned, const RowAddends& added, const SparseProblem& problem,
                      const CsrView& pattern) {
  if (!added.any() || planned->format == SparseFormat::csr) return planned;
  return choose_by_rules(problem, target_of(pattern.device));
}

std::int64_t heads_of(ConstTensorView weights) {
  return weights.defined() ? weights.extent(1) : 1;
}

}   // namespace

SpmmResult spmm(const CsrView& pattern, ConstTensorView values, ConstTensorView features,
                EntryReduction reduction, const SpmmPlaces& places, const SparsePlan* plan,
                const RowAddends& added) {
  const char* const op = "spmm";
  checks::pattern_size(pattern, op);
  checks::whole_rows(pattern, op);
  checks::rows_of(features, pattern, pattern.columns, op, "features", "columns");
  const ConstTensorView weights =
      checks::entry_values(values, pattern, pattern.entries(), features, op);
  check_added(added, pattern, features, reduction, plan, op);
  const SparseProblem problem = problem_of(SparseDirection::forward, pattern, features,
                                           heads_of(weights), weights.defined(), reduction);
  const SparsePlanPtr planned =
      fitting(plan_of(problem, pattern, features.stream(), plan), added, problem, pattern);
  const Shape shape{pattern.rows, features.extent(1)};
  SpmmResult result;
  result.output = places.output.make(shape, features.dtype(), features.stream(), "places.output");
  if (checks::picks(reduction))
    result.source = places.source.make(shape, DType::i64, features.stream(), "places.source");
  const GatherReduceArguments arguments{
      .pattern = pattern,
      .values = weights,
      .features = features,
      .output = result.output.view(),
      .source = result.source.defined() ? result.source.view() : TensorView{},
      .added = added,
      .schedule = ranges_of(*planned)};
  gather(arguments, reduction, *planned);
  return result;
}

Tensor spmm_features_gradient(const CsrView& pattern, const CsrView& backwards,
                              ConstTensorView values, ConstTensorView grad_output,
                              ConstTensorView source, EntryReduction reduction, const Place& place,
                              const SparsePlan* plan, const RowAddends& added) {
  const char* const op = "spmm_features_gradient";
  checks::pattern_size(pattern, op);
  checks::whole_rows(backwards, op);
  checks::is_transpose(backwards, pattern, op);
  checks::rows_of(grad_output, pattern, pattern.rows, op, "grad_output", "rows");
  const ConstTensorView weights =
      checks::entry_values(values, pattern, pattern.entries(), grad_output, op);
  const ConstTensorView chosen = checked_source(source, pattern, grad_output, reduction, op);
  check_added(added, backwards, grad_output, reduction, plan, op);
  const SparseProblem problem =
      problem_of(SparseDirection::features_gradient, backwards, grad_output, heads_of(weights),
                 weights.defined(), reduction);
  const SparsePlanPtr planned =
      fitting(plan_of(problem, backwards, grad_output.stream(), plan), added, problem, backwards);
  Tensor result = place.make({pattern.columns, grad_output.extent(1)}, grad_output.dtype(),
                             grad_output.stream());
  const bool is_cut = planned->format != SparseFormat::csr;
  if (checks::is_on_device(pattern) && !is_cut) {
    cuda::spmm_features_gradient(pattern, backwards, weights, grad_output, chosen, reduction,
                                 result.view(), *planned->teams, added);
    return result;
  }
  if (checks::picks(reduction)) {
    cpu::picked_features_gradient(backwards, weights, grad_output, chosen, result.view(),
                                  *planned->ranges);
    return result;
  }
  const Tensor means =
      reduction == EntryReduction::mean ? averaged(pattern, grad_output) : Tensor();
  gather({.pattern = backwards,
          .values = weights,
          .features = means.defined() ? means.view() : grad_output,
          .output = result.view(),
          .added = added,
          .schedule = ranges_of(*planned)},
         EntryReduction::sum, *planned);
  return result;
}

Tensor spmm_values_gradient(const CsrView& pattern, ConstTensorView features,
                            ConstTensorView grad_output, std::int64_t heads, ConstTensorView source,
                            EntryReduction reduction, const Place& place, const SparsePlan* plan) {
  const char* const op = "spmm_values_gradient";
  checks::pattern_size(pattern, op);
  checks::rows_of(features, pattern, pattern.columns, op, "features", "columns");
  checks::rows_of(grad_output, pattern, pattern.rows, op, "grad_output", "rows");
  checks::same_dtype(grad_output, features.dtype(), op, "grad_output", "features");
  PUMICE_EXPECTS(features.extent(1) == grad_output.extent(1), op, ": features have ",
                 features.extent(1), " channels and grad_output ", grad_output.extent(1),
                 ": give those of one product");
  checks::head_count(heads, features.extent(1), op);
  const ConstTensorView chosen = checked_source(source, pattern, grad_output, reduction, op);
  const SparsePlanPtr planned = plan_of(
      problem_of(SparseDirection::values_gradient, pattern, features, heads, true, reduction),
      pattern, features.stream(), plan);
  Tensor result = place.make({pattern.entries(), heads}, features.dtype(), features.stream());
  const bool is_cut = planned->format != SparseFormat::csr;
  if (checks::is_on_device(pattern) && !is_cut) {
    cuda::spmm_values_gradient(pattern, features, grad_output, chosen, reduction, result.view(),
                               *planned->teams);
    return result;
  }
  if (checks::picks(reduction)) {
    cpu::picked_values_gradient(pattern, features, grad_output, chosen, result.view(),
                                *planned->ranges);
    return result;
  }
  const Tensor means =
      reduction == EntryReduction::mean ? averaged(pattern, grad_output) : Tensor();
  multiply({.pattern = pattern,
            .left = means.defined() ? means.view() : grad_output,
            .right = features,
            .output = result.view(),
            .schedule = ranges_of(*planned)},
           *planned);
  return result;
}

Tensor sddmm(const CsrView& pattern, ConstTensorView left, ConstTensorView right,
             std::int64_t heads, const Place& place, const SparsePlan* plan) {
  const char* const op = "sddmm";
  checks::pattern_size(pattern, op);
  checks::rows_of(left, pattern, pattern.rows, op, "left", "rows");
  checks::rows_of(right, pattern, pattern.columns, op, "right", "columns");
  checks::same_dtype(right, left.dtype(), op, "right", "left");
  PUMICE_EXPECTS(left.extent(1) == right.extent(1), op, ": left has ", left.extent(1),
                 " channels and right ", right.extent(1), ": give as many");
  checks::head_count(heads, left.extent(1), op);
  const SparsePlanPtr planned =
      plan_of(sparse_problem(SparseOperator::sddmm, SparseDirection::forward, pattern, left.dtype(),
                             left.extent(1), heads),
              pattern, left.stream(), plan);
  Tensor result = place.make({pattern.entries(), heads}, left.dtype(), left.stream());
  multiply({.pattern = pattern,
            .left = left,
            .right = right,
            .output = result.view(),
            .schedule = ranges_of(*planned)},
           *planned);
  return result;
}

}   // namespace pumice
