// Describes calls, and finds their plans.
#include "ops/sparse_calls.hpp"

#include <utility>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/formats/decompositions.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/choose_sparse.hpp>

#include "ops/tune/call_recorder.hpp"

namespace pumice {
namespace {

Decomposed cut(const SparsePlan& plan, const CsrView& pattern) {
  if (plan.format == SparseFormat::ell) return formats::ell(pattern, plan.width);
  formats::HybOptions options{.column_parts = plan.column_parts};
  for (std::int64_t width = 1; width <= plan.width; width *= 2)
    options.widths.push_back(width);
  return formats::hyb(pattern, options);
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
    if (logging(LogTopic::plan))
      log(LogTopic::plan, explain(with_lengths(problem, pattern), target, *plan));
    if (records_sparse_calls())
      note_sparse_call(with_lengths(problem, pattern), plan, pattern, stream);
  }
  PlanRecord::add(problem, *plan);
  return plan;
}

std::shared_ptr<const Decomposed> cut_for(const SparsePlan& plan, const CsrView& pattern) {
  PUMICE_ENSURES(plan.format != SparseFormat::csr, "nothing is cut for csr");
  if (pattern.kept == nullptr) return std::make_shared<const Decomposed>(cut(plan, pattern));
  return pattern.kept->get<Decomposed>(plan.name_of_format(), [&] { return cut(plan, pattern); });
}

}   // namespace pumice
