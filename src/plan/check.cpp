// What is wrong with a plan that somebody gives.
#include <pumice/plan/choose.hpp>

#include <pumice/core/error.hpp>

#include "plan/rules.hpp"
#include "plan/schedule_fields.hpp"
#include "plan/space/device_problem.hpp"
#include "plan/spec_names.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kMostCpuTileRows = 1 << 20;

void check_on_cpu(const ConvolutionPlan& plan, const ConvolutionProblem& problem) {
  PUMICE_EXPECTS(!plan.tile && !plan.gradient && plan.write == Write::store, "plan ", plan.name(),
                 " is one of a device, and features are on the CPU: give one of candidates() of "
                 "this machine");
  PUMICE_EXPECTS(!plan.fuses_inputs, "plan ", plan.name(),
                 " reads several inputs in one kernel, which no kernel of a CPU does; leave "
                 "fuses_inputs out");
  if (problem.direction == Direction::weight_gradient) {
    PUMICE_EXPECTS(plan.tile_rows == 0, "plan ", plan.name(), ": tile_rows = ", plan.tile_rows,
                   ": a weight gradient has no tiles on a CPU; leave tile_rows out");
    return;
  }
  PUMICE_EXPECTS(plan.tile_rows >= 1 && plan.tile_rows <= kMostCpuTileRows, "plan ", plan.name(),
                 ": tile_rows = ", plan.tile_rows, ": give 1 to 1048576, as in 512");
}

void check_number(const ConvolutionPlan& plan, const char* name, std::int32_t value,
                  std::int32_t least, std::int32_t most) {
  PUMICE_EXPECTS(value >= least && value <= most, "plan ", plan.name(), ": ", name, " = ", value,
                 ": give ", least, " to ", most);
}

/// Before anything is computed of them.
template <class Schedule, class Spec, std::size_t kCount>
void check_numbers(const ConvolutionPlan& plan, const Schedule& schedule,
                   const ScheduleField<Schedule, Spec> (&fields)[kCount]) {
  for (const auto& field : fields)
    check_number(plan, field.name, schedule.*field.in_schedule, field.least, field.most);
}

template <class Spec>
void check_spec(const Spec& spec, const ConvolutionPlan& plan, const Target& target) {
  const char* why = why_invalid(spec);
  PUMICE_EXPECTS(why == nullptr, "plan ", plan.name(), " has no kernel: ", why,
                 "; give one of candidates() of this problem");
  PUMICE_EXPECTS((architectures(spec) & target.architecture) != 0, "plan ", plan.name(),
                 " has no kernel on this device: give one of candidates() of this problem");
}

void check_on_device(const ConvolutionPlan& plan, const ConvolutionProblem& problem,
                     const Target& target) {
  PUMICE_EXPECTS(plan.tile_rows == 0, "plan ", plan.name(),
                 " is one of a CPU, and features are on a device: give one of candidates() of "
                 "that device");
  const bool has_schedule =
      !problem.is_depthwise() && plan.dataflow != Dataflow::gather_gemm_scatter;
  const bool is_gradient = problem.direction == Direction::weight_gradient;
  PUMICE_EXPECTS(plan.tile.has_value() == (has_schedule && !is_gradient) &&
                     plan.gradient.has_value() == (has_schedule && is_gradient),
                 "plan ", plan.name(), " of a ", name_of(problem.direction),
                 ": the schedule is that of another direction or kernel, or lacks; give one of "
                 "candidates() of this problem");
  if (plan.tile) check_numbers(plan, *plan.tile, kTileFields);
  if (plan.gradient) {
    check_numbers(plan, *plan.gradient, kGradientFields);
    check_number(plan, "share_blocks", plan.gradient->share_blocks, 0, kMostShareBlocks);
  }
  PUMICE_EXPECTS(!(problem.numerics.deterministic && plan.write == Write::add), "plan ",
                 plan.name(),
                 " adds in any order, and deterministic results are asked for: give a plan that "
                 "writes slots");
  if (is_gradient) {
    PUMICE_EXPECTS(plan.write != Write::store, "plan ", plan.name(),
                   ": a weight gradient is added up; give write add or slots");
    PUMICE_EXPECTS(plan.write == Write::slots || !problem.is_depthwise(), "plan ", plan.name(),
                   ": a depthwise weight gradient has slots for its sums; give write slots");
    if (has_schedule) check_spec(cuda::gradient_spec(problem, plan), plan, target);
    return;
  }
  const bool adds = adds_in_memory(plan.dataflow, problem) || plan.splits > 1;
  PUMICE_EXPECTS(
      (plan.write != Write::store) == adds, "plan ", plan.name(), ": write ",
      cuda::name_of(plan.write),
      adds ? " cannot add products up; give add or slots" : " has nothing to add up; give store");
  PUMICE_EXPECTS(!plan.fuses_inputs || can_fuse_inputs(problem, target, plan.dataflow), "plan ",
                 plan.name(),
                 " reads several inputs in one kernel, which these have not; give one of "
                 "candidates() of this problem");
  if (!has_schedule) return;
  const TileSpec spec = cuda::tile_spec(problem, plan);
  check_spec(spec, plan, target);
  PUMICE_EXPECTS(plan.splits == 1 || spec.resident_offsets == 0, "plan ", plan.name(),
                 ": a tile that keeps the weights of all offsets has no splits; give splits 1");
  PUMICE_EXPECTS(spec.resident_offsets == 0 || spec.resident_offsets == problem.offsets, "plan ",
                 plan.name(), " keeps the weights of ", spec.resident_offsets,
                 " offsets, and there are ", problem.offsets,
                 "; give one of candidates() of this problem");
}

}   // namespace

void check(const ConvolutionPlan& plan, const ConvolutionProblem& problem, const Target& target) {
  const bool is_gradient = problem.direction == Direction::weight_gradient;
  PUMICE_EXPECTS((plan.dataflow == Dataflow::sum_over_pairs) == is_gradient, "plan ", plan.name(),
                 " for a ", name_of(problem.direction), ": ",
                 is_gradient ? "a weight gradient is a sum over pairs and nothing else"
                             : "sum_over_pairs is of weight gradients alone",
                 "; give one of candidates() of this problem");
  PUMICE_EXPECTS(plan.splits >= 1 && plan.splits <= kMostSplits, "plan ", plan.name(),
                 ": splits = ", plan.splits, ": give 1 to 4");
  PUMICE_EXPECTS(plan.splits == 1 || plan.dataflow == Dataflow::implicit_gemm, "plan ", plan.name(),
                 ": only implicit_gemm has splits; give splits 1");
  PUMICE_EXPECTS(!plan.sort_by_mask || plan.dataflow == Dataflow::implicit_gemm, "plan ",
                 plan.name(), ": only implicit_gemm has an order of rows; leave sort_by_mask out");
  if (target.on_device()) {
    check_on_device(plan, problem, target);
  } else {
    check_on_cpu(plan, problem);
  }
}

}   // namespace pumice
