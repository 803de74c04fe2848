// Sparse convolution and its gradients: describe the problem, ask for a plan, run it.
#include <pumice/ops/convolution.hpp>

#include <optional>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "maps/cuda/map_structures.hpp"
#include "ops/checks.hpp"
#include "ops/convolution_checks.hpp"
#include "ops/convolution_steps.hpp"
#include "ops/cpu/convolution_dataflows.hpp"
#include "ops/cpu/convolution_sums.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

ConvolutionProblem describe(Direction direction, const KernelMapView& map, std::int64_t in_channels,
                            std::int64_t out_channels, std::int64_t groups, DType dtype) {
  const bool on_device = map.device.kind == DeviceKind::cuda;
  const bool all_meet = on_device || map.pairs() == map.in_rows;
  const bool identity =
      map.offsets == 1 && map.has_identity_offset && map.in_rows == map.out_rows && all_meet;
  return {.direction = direction,
          .in_rows = map.in_rows,
          .out_rows = map.out_rows,
          .pairs = map.pairs(),
          .offsets = map.offsets,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .groups = groups,
          .dtype = dtype,
          .identity = identity,
          .on_device = on_device};
}

ConvolutionPlan plan_for(const ConvolutionProblem& problem, const ConvolutionOptions& options) {
  ConvolutionPlan plan = plan_convolution(problem, options.dataflow);
  if (options.chosen != nullptr) *options.chosen = plan;
  if (logging(LogTopic::plan)) log(LogTopic::plan, explain(problem, plan));
  return plan;
}

std::int64_t channels_of(ConstTensorView tensor) {
  return tensor.defined() ? tensor.extent(1) : 0;
}

/// The forward pass, with all its inputs.
ConvolutionProblem describe(ConstTensorView features, ConstTensorView weight,
                            const KernelMapView& map, const ConvolutionOptions& options) {
  const std::int64_t second = channels_of(options.second);
  ConvolutionProblem problem = describe(Direction::forward, map, features.extent(1) + second,
                                        weight.extent(2), options.groups, features.dtype());
  problem.second_channels = second;
  problem.shortcut_second_channels = channels_of(options.shortcut.second);
  problem.shortcut_channels =
      channels_of(options.shortcut.features) + problem.shortcut_second_channels;
  return problem;
}

/// What meets on a device is on the same one.
void check_on_device(ConstTensorView input, const KernelMapView& map) {
  PUMICE_EXPECTS(map.device == input.device() && map.map != nullptr, "features are on ",
                 to_string(input.device()), " but the kernel map is on ", to_string(map.device),
                 ": build it from coordinates on the same device");
}

/// What a weight has to be of: the type of the input, or f32 where that is rounded on the way.
DType weight_type(ConstTensorView input, ConstTensorView weight,
                  const ConvolutionOptions& options) {
  const bool halves = input.dtype() == DType::f16 || input.dtype() == DType::bf16;
  const bool packs = checks::on_cuda(input) && options.groups == 1 &&
                     options.dataflow.value_or(Dataflow::implicit_gemm) == Dataflow::implicit_gemm;
  const bool rounds = options.rounds_weight && halves && packs && weight.dtype() == DType::f32;
  return rounds ? DType::f32 : input.dtype();
}

void check_tf32(const ConvolutionOptions& options, DType dtype) {
  PUMICE_EXPECTS(!options.tf32 || dtype == DType::f32,
                 "tf32 is a way to multiply f32, and features are ", name_of(dtype),
                 ": leave tf32 out, or convert them");
}

void check_on_host(const KernelMapView& map, const ConvolutionOptions& options) {
  PUMICE_EXPECTS(!options.tf32,
                 "tf32 is for tensor cores, and features are on the CPU: leave tf32 out");
  PUMICE_EXPECTS(map.device.kind == DeviceKind::cpu, "the kernel map is on ", to_string(map.device),
                 " but features are on the CPU: copy_to brings them there");
}

void report(const ConvolutionPlan& plan, const ConvolutionOptions& options) {
  if (options.chosen != nullptr) *options.chosen = plan;
  if (logging(LogTopic::plan)) log(LogTopic::plan, plan.name() + ": " + plan.reason);
}

/// Of a product without a map.
std::optional<RowCountRef> used_rows(const KernelMapView& map, const ConvolutionProblem& problem) {
  if (!problem.identity) return std::nullopt;
  return cuda::MapStructures::output_rows(map);
}

/// The kernel that runs.
std::string run_on_device(Dataflow dataflow, const cuda::TileProduct& product,
                          const KernelMapView& map, const ConvolutionProblem& problem) {
  // Depthwise kernels go through a map, and so does what multiplies pair by pair; of an identity
  // every output has one product, so that there is nothing to add up.
  const bool depthwise =
      cuda::is_depthwise(problem.groups, problem.in_channels, problem.out_channels);
  const bool as_rows = problem.identity && !depthwise;
  switch (dataflow) {
    case Dataflow::fetch_on_demand:
      return as_rows ? cuda::run(product, nullptr) : cuda::fetch_on_demand(product, map);
    case Dataflow::gather_gemm_scatter:
      return cuda::gather_gemm_scatter(product, problem.identity ? nullptr : &map);
    case Dataflow::implicit_gemm: return cuda::run(product, as_rows ? nullptr : &map);
    case Dataflow::sum_over_pairs: break;
  }
  PUMICE_ENSURES(false, "dataflow ", name_of(dataflow), " of a product");
  return {};
}

Tensor multiply_on_device(ConstTensorView input, ConstTensorView weight, const KernelMapView& map,
                          const ConvolutionProblem& problem, const ConvolutionOptions& options,
                          const Place& place) {
  check_on_device(input, map);
  check_tf32(options, input.dtype());
  checks::same_device(weight, input, "convolution", "weight", "features");
  checks::same_device(options.epilogue.scale, input, "convolution", "scale", "features");
  checks::same_device(options.epilogue.shift, input, "convolution", "bias", "features");
  checks::same_device(options.epilogue.residual, input, "convolution", "residual", "features");
  ConvolutionPlan plan = plan_convolution(problem, options.dataflow);
  Tensor output = place.make({map.out_rows, problem.out_channels}, input.dtype(), input.stream());
  plan.kernel = run_on_device(plan.dataflow,
                              {.input = input,
                               .second = options.second,
                               .weight = weight,
                               .transpose_weight = problem.direction == Direction::input_gradient,
                               .groups = options.groups,
                               .kept = options.tile_weights,
                               .shortcut = options.shortcut,
                               .epilogue = options.epilogue,
                               .tf32 = options.tf32,
                               .deterministic = options.deterministic,
                               .output = output.view(),
                               .rows = used_rows(map, problem)},
                              map, problem);
  report(plan, options);
  return output;
}

/// Forward and input gradient are the same product, on a map and on its transpose.
Tensor multiply(ConstTensorView input, ConstTensorView weight, const KernelMapView& map,
                const ConvolutionProblem& problem, const ConvolutionOptions& options,
                const Place& place) {
  if (checks::on_cuda(input))
    return multiply_on_device(input, weight, map, problem, options, place);
  check_on_host(map, options);
  if (options.packed != nullptr) {
    check_packed(*options.packed, map.offsets, problem.in_channels, problem.out_channels,
                 options.groups, input.dtype());
  }
  const ConvolutionPlan plan = plan_for(problem, options);
  Tensor output = place.make({map.out_rows, problem.out_channels}, input.dtype(), input.stream());
  cpu::run({.input = input,
            .weight = weight,
            .transpose_weight = problem.direction == Direction::input_gradient,
            .groups = options.groups,
            .packed = options.packed,
            .epilogue = options.epilogue,
            .output = output.view()},
           map, plan);
  return output;
}

}   // namespace

Tensor convolution(ConstTensorView features, ConstTensorView weight, const KernelMapView& map,
                   const ConvolutionOptions& options, const Place& place) {
  check_lists(map, "convolution");
  check_features("features", features, {"map.in_rows", map.in_rows});
  check_weight(weight, map, options.groups,
               {"the features are", weight_type(features, weight, options)});
  check_more_inputs(options, features, map.out_rows, weight.extent(2));
  const ConvolutionProblem problem = describe(features, weight, map, options);
  PUMICE_EXPECTS(weight.extent(1) * options.groups == problem.in_channels, "weight ",
                 to_string(weight.shape()), " in ", options.groups, " groups takes ",
                 weight.extent(1) * options.groups, " input channels, but features have ",
                 problem.in_channels, ": give [offsets, input channels / groups, output channels]");
  check_epilogue(options.epilogue, map.out_rows, weight.extent(2), features.dtype());
  if (problem.has_more_inputs() && !plan_convolution(problem, options.dataflow).fuses_inputs)
    return convolution_in_steps(features, weight, map, options, place);
  return multiply(features, weight, map, problem, options, place);
}

Tensor convolution_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                  const KernelMapView& map, const ConvolutionOptions& options,
                                  const Place& place) {
  check_lists(map, "convolution_input_gradient");
  check_features("grad_output", grad_output, {"map.out_rows", map.out_rows});
  check_weight(weight, map, options.groups,
               {"grad_output is", weight_type(grad_output, weight, options)});
  PUMICE_EXPECTS(weight.extent(2) == grad_output.extent(1), "weight ", to_string(weight.shape()),
                 " makes ", weight.extent(2), " output channels, but grad_output has ",
                 grad_output.extent(1), ": give the weight of the forward convolution");
  check_bare(options, true);
  check_epilogue(options.epilogue, map.in_rows, weight.extent(1) * options.groups,
                 grad_output.dtype());
  const KernelMapView backwards = transposed(map);
  return multiply(grad_output, weight, backwards,
                  describe(Direction::input_gradient, backwards, grad_output.extent(1),
                           weight.extent(1) * options.groups, options.groups, grad_output.dtype()),
                  options, place);
}

namespace {

ConvolutionProblem weight_gradient_problem(ConstTensorView features, ConstTensorView grad_output,
                                           const KernelMapView& map,
                                           const ConvolutionOptions& options) {
  check_lists(map, "convolution_weight_gradient");
  check_features("features", features, {"map.in_rows", map.in_rows});
  check_features("grad_output", grad_output, {"map.out_rows", map.out_rows});
  PUMICE_EXPECTS(features.dtype() == grad_output.dtype(), "features are ",
                 name_of(features.dtype()), " but grad_output is ", name_of(grad_output.dtype()),
                 ": convert one of them");
  checks::same_device(grad_output, features, "convolution_weight_gradient", "grad_output",
                      "features");
  check_groups("features", features.extent(1), options.groups);
  check_groups("grad_output", grad_output.extent(1), options.groups);
  check_bare(options);
  if (checks::on_cuda(features)) {
    check_on_device(features, map);
    check_tf32(options, features.dtype());
  } else {
    check_on_host(map, options);
  }
  return describe(Direction::weight_gradient, map, features.extent(1), grad_output.extent(1),
                  options.groups, features.dtype());
}

Shape weight_shape(const ConvolutionProblem& problem, std::int64_t offsets) {
  return {offsets, problem.in_channels / problem.groups, problem.out_channels};
}

void run_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                         const KernelMapView& map, const ConvolutionProblem& problem,
                         const ConvolutionOptions& options, TensorView result, bool is_zero) {
  ConvolutionPlan plan = plan_convolution(problem, options.dataflow);
  plan.kernel = cuda::run({.features = features,
                           .grad_output = grad_output,
                           .groups = options.groups,
                           .deterministic = options.deterministic,
                           .tf32 = options.tf32,
                           .result = result,
                           .is_zero = is_zero},
                          &map);
  report(plan, options);
}

}   // namespace

Tensor convolution_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                   const KernelMapView& map, const ConvolutionOptions& options,
                                   const Place& place) {
  const ConvolutionProblem problem = weight_gradient_problem(features, grad_output, map, options);
  const bool widens = options.wide_weight_gradient && features.dtype() != DType::f64;
  const DType result_type = widens ? DType::f32 : features.dtype();
  const Shape shape = weight_shape(problem, map.offsets);
  if (checks::on_cuda(features)) {
    Tensor result = place.make(shape, result_type, features.stream());
    run_weight_gradient(features, grad_output, map, problem, options, result.view(),
                        place.is_zeroed());
    return result;
  }
  plan_for(problem, options);
  if (result_type == features.dtype())
    return weight_gradient(features, grad_output, map, options.groups, place);
  Tensor result = place.make(shape, result_type, features.stream());
  convert_on_host(result.view(), weight_gradient(features, grad_output, map, options.groups));
  return result;
}

Tensor bias_gradient(ConstTensorView grad_output, const Place& place) {
  check_features("grad_output", grad_output, {"its own", grad_output.rows()});
  Tensor sums = place.make({grad_output.extent(1)}, checks::compute_dtype(grad_output.dtype()),
                           grad_output.stream());
  if (!checks::on_cuda(grad_output)) {
    cpu::sum_rows(grad_output, sums.view());
    return sums;
  }
  jit::DeviceRunner runner = cuda::runner_for(grad_output);
  cuda::sum_items(runner, cuda::all_rows(grad_output), grad_output, false, sums.view());
  return sums;
}

}   // namespace pumice
