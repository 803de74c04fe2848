// The one description of a convolution, and its plan.
#include <pumice/core/error.hpp>
#include <pumice/ops/convolution.hpp>

#include "coords/cuda/coordinate_set.hpp"
#include "ops/planned_call.hpp"
#include "ops/tune/call_recorder.hpp"

namespace pumice {
namespace {

ConvolutionProblem describe(Direction direction, const KernelMapView& map,
                            const ConvolutionOptions& options) {
  const bool on_device = map.device.kind == DeviceKind::cuda;
  const bool all_meet = on_device || map.pairs() == map.in_rows;
  // A graph has room for more rows than the scan it was learned from. What suits the room would
  // be tiles of other heights than those that are cut with the maps: MinkUNet42 in f16 took 1.71 ms
  // on an H200, and 1.59 with the plans of the scan.
  const KernelMap* own = map.map;
  const auto rows = [&](bool of_output, std::int64_t room) {
    return own == nullptr ? room : cuda::likely_rows(of_output ? *own->out() : *own->in());
  };
  return {.direction = direction,
          .in_rows = rows(map.is_transposed, map.in_rows),
          .out_rows = rows(!map.is_transposed, map.out_rows),
          .pairs = map.pairs(),
          .offsets = map.offsets,
          .groups = options.groups,
          .numerics = options.numerics,
          .identity = map.offsets == 1 && map.has_identity_offset && map.in_rows == map.out_rows &&
                      all_meet};
}

std::int64_t channels_of(ConstTensorView tensor) {
  return tensor.defined() ? tensor.extent(1) : 0;
}

ActivationSet activations_for(Activation activation) {
  const bool is_sloped = activation == Activation::none || activation == Activation::relu ||
                         activation == Activation::leaky_relu;
  return is_sloped ? ActivationSet::sloped : ActivationSet::all;
}

}   // namespace

ConvolutionProblem convolution_problem(ConstTensorView features, ConstTensorView weight,
                                       const KernelMapView& map,
                                       const ConvolutionOptions& options) {
  ConvolutionProblem problem = describe(Direction::forward, map, options);
  problem.dtype = features.dtype();
  problem.second_channels = channels_of(options.second);
  problem.in_channels = features.extent(1) + problem.second_channels;
  problem.out_channels = weight.extent(2);
  problem.activations = activations_for(options.epilogue.activation);
  problem.shortcut_second_channels = channels_of(options.shortcut.second);
  problem.shortcut_channels =
      channels_of(options.shortcut.features) + problem.shortcut_second_channels;
  return problem;
}

ConvolutionProblem convolution_input_gradient_problem(ConstTensorView grad_output,
                                                      ConstTensorView weight,
                                                      const KernelMapView& map,
                                                      const ConvolutionOptions& options) {
  ConvolutionProblem problem = describe(Direction::input_gradient, transposed(map), options);
  problem.dtype = grad_output.dtype();
  problem.in_channels = grad_output.extent(1);
  problem.out_channels = weight.extent(1) * options.groups;
  return problem;
}

ConvolutionProblem convolution_weight_gradient_problem(ConstTensorView features,
                                                       ConstTensorView grad_output,
                                                       const KernelMapView& map,
                                                       const ConvolutionOptions& options) {
  ConvolutionProblem problem = describe(Direction::weight_gradient, map, options);
  problem.dtype = features.dtype();
  problem.in_channels = features.extent(1);
  problem.out_channels = grad_output.extent(1);
  return problem;
}

PlanPtr plan_for(const ConvolutionProblem& problem, Device device,
                 const ConvolutionOptions& options) {
  if (options.plan != nullptr) {
    PUMICE_EXPECTS(!options.dataflow, "a plan (", options.plan->name(), ") and a dataflow (",
                   name_of(*options.dataflow),
                   ") are given: a plan names its own, so leave the "
                   "dataflow out");
    return given_plan(*options.plan, problem, device);
  }
  const Target& target = target_of(device);
  return options.shared != nullptr && !options.dataflow ? choose(problem, target, *options.shared)
                                                        : choose(problem, target, options.dataflow);
}

PlanPtr plan_of(const ConvolutionProblem& problem, const KernelMapView& map,
                const ConvolutionOptions& options) {
  PlanPtr plan = plan_for(problem, map.device, options);
  if (options.plan != nullptr) return plan;
  log_choice(problem, *plan, map.device);
  if (records_calls(map.device) && !options.dataflow && map.map != nullptr) {
    note_call({.problem = problem,
               .plan = plan,
               .map = map.map->shared_from_this(),
               .is_transposed = map.is_transposed});
  }
  return plan;
}

}   // namespace pumice
