// Plain translation, and the checks of schedules that somebody else made.
#include "plan/space/device_problem.hpp"

#include <algorithm>

#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>

#include "core/environment.hpp"
#include "plan/space/gradient_cost.hpp"

namespace pumice::cuda {
namespace {

ElementType stored_as(ElementType operand) {
  return operand == ElementType::tf32 ? ElementType::f32 : operand;
}

std::int32_t narrow(std::int64_t value) {
  return static_cast<std::int32_t>(value);
}

}   // namespace

ElementType operand_type(DType features, bool tf32) {
  switch (features) {
    case DType::f32: return tf32 ? ElementType::tf32 : ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: break;
  }
  PUMICE_ENSURES(false, "kernels of a device do not take ", name_of(features));
  return {};
}

TileProblem tile_problem(const ConvolutionProblem& problem, const Target& target, Dataflow dataflow,
                         Write write, bool fuses_inputs) {
  const ElementType operand = operand_type(problem.dtype, problem.numerics.tf32);
  const bool by_pairs = dataflow == Dataflow::fetch_on_demand && !problem.identity;
  const std::int64_t pairs_of_row = by_pairs ? std::min(problem.offsets, kLikelyPairs) : 1;
  const bool several = fuses_inputs && problem.has_more_inputs();
  return {.operand = operand,
          .output = stored_as(operand),
          .gather = problem.identity ? Gather::identity : Gather::map,
          .write = write,
          .in_channels = narrow(problem.in_channels / problem.groups),
          .first_channels = narrow((problem.in_channels - (several ? problem.second_channels : 0)) /
                                   problem.groups),
          .out_channels = narrow(problem.out_channels / problem.groups),
          .groups = narrow(problem.groups),
          .shortcut_channels = several ? narrow(problem.shortcut_channels) : 0,
          .shortcut_first_channels =
              several ? narrow(problem.shortcut_channels - problem.shortcut_second_channels) : 0,
          .activations = write == Write::store ? problem.activations : ActivationSet::sloped,
          .rows = problem.out_rows * pairs_of_row * environment::kernel_rows(),
          .offsets = problem.offsets,
          .architecture = target.architecture,
          .multiprocessors = target.multiprocessors};
}

GradientProblem gradient_problem(const ConvolutionProblem& problem, const Target& target,
                                 Write write) {
  return {.operand = operand_type(problem.dtype, problem.numerics.tf32),
          .write = write,
          .in_channels = narrow(problem.in_channels / problem.groups),
          .out_channels = narrow(problem.out_channels / problem.groups),
          .groups = narrow(problem.groups),
          .offsets = narrow(problem.offsets),
          .rows = problem.out_rows * environment::kernel_rows(),
          .architecture = target.architecture,
          .multiprocessors = target.multiprocessors};
}

TileSpec tile_spec(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  PUMICE_ENSURES(plan.tile.has_value(), "a plan without a tile: ", plan.name());
  return with(base_spec(tile_problem(problem, {}, plan.dataflow, plan.write, plan.fuses_inputs)),
              *plan.tile);
}

GradientSpec gradient_spec(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  PUMICE_ENSURES(plan.gradient.has_value(), "a plan without a schedule: ", plan.name());
  return with(base_spec(gradient_problem(problem, {}, plan.write)), *plan.gradient);
}

}   // namespace pumice::cuda
