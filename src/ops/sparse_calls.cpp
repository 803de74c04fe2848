// Describes calls, and finds their plans.
#include "ops/sparse_calls.hpp"

#include <utility>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "ops/tune/call_recorder.hpp"

namespace pumice {
namespace {

Decomposed cut(const SparsePlan& plan, const CsrView& pattern, StreamView stream) {
  if (plan.format == SparseFormat::ell) return formats::ell(pattern, plan.width, stream);
  formats::HybOptions options{.column_parts = plan.column_parts};
  for (std::int64_t width = 1; width <= plan.width; width *= 2)
    options.widths.push_back(width);
  return formats::hyb(pattern, options, {}, stream);
}

/// Whether a product by the plan need not wait, or may, and the cut stays for the next one.
bool can_cut_now(const SparsePlan& plan, const CsrView& pattern, StreamView stream) {
  if (pattern.device.kind == DeviceKind::cpu) return true;
  if (pattern.kept == nullptr) return false;
  return pattern.kept->has(plan.name_of_format()) || can_wait(stream);
}

/// By the rules, in place of a plan that was chosen.
SparsePlanPtr uncut(const SparsePlan& chosen, const SparseProblem& problem, const Target& target) {
  SparsePlan ruled = *choose_by_rules(problem, target);
  ruled.reason = "what " + chosen.name() +
                 " would cut was not made before this product, which cannot wait for it; by the "
                 "rules: " +
                 ruled.reason;
  return std::make_shared<const SparsePlan>(std::move(ruled));
}

}   // namespace

SparseProblem sparse_problem(SparseOperator op, SparseDirection direction, const CsrView& pattern,
                             DType dtype, std::int64_t channels, std::int64_t heads) {
  return {.op = op,
          .direction = direction,
          .rows = pattern.rows,
          .columns = pattern.columns,
          .entries = pattern.entries(),
          .channels = channels,
          .heads = heads,
          .dtype = dtype};
}

SparseProblem with_lengths(SparseProblem problem, const CsrView& pattern) {
  if (pattern.device.kind != DeviceKind::cpu) return problem;
  problem.lengths =
      pattern.kept != nullptr
          ? pattern.kept->get<RowLengths>("lengths", [&] { return row_lengths(pattern); })
          : std::make_shared<const RowLengths>(row_lengths(pattern));
  return problem;
}

SparsePlanPtr plan_of(const SparseProblem& problem, const CsrView& pattern, StreamView stream,
                      const SparsePlan* given) {
  const Target& target = target_of(pattern.device);
  SparsePlanPtr plan;
  if (given != nullptr) {
    check(*given, problem, target);
    plan = SparsePlanPtr(SparsePlanPtr(), given);   // which owns nothing
  } else {
    plan = choose(problem, target);
    // What was measured may have been of a pattern with other rows, of as many entries.
    if (plan->format != SparseFormat::csr) plan = choose(with_lengths(problem, pattern), target);
    if (plan->format != SparseFormat::csr && !can_cut_now(*plan, pattern, stream))
      plan = uncut(*plan, problem, target);
    if (logging(LogTopic::plan))
      log(LogTopic::plan, explain(with_lengths(problem, pattern), target, *plan));
    if (records_sparse_calls(pattern.device))
      note_sparse_call(with_lengths(problem, pattern), plan, pattern, stream);
  }
  PlanRecord::add(problem, *plan);
  return plan;
}

std::shared_ptr<const Decomposed> cut_for(const SparsePlan& plan, const CsrView& pattern,
                                          StreamView stream) {
  PUMICE_ENSURES(plan.format != SparseFormat::csr, "nothing is cut for csr");
  if (pattern.kept == nullptr)
    return std::make_shared<const Decomposed>(cut(plan, pattern, stream));
  return pattern.kept->get<Decomposed>(plan.name_of_format(), [&] {
    Decomposed made = cut(plan, pattern, stream);
    wait(stream);   // another stream may take it next
    return made;
  });
}

}   // namespace pumice
