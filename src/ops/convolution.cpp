// Sparse convolution and its gradients: check, describe the problem, ask for a plan, run it.
#include <pumice/ops/convolution.hpp>

#include <optional>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/ops/plan_record.hpp>

#include "formats/cuda/device_formats.hpp"
#include "ops/checks.hpp"
#include "ops/convolution_checks.hpp"
#include "ops/convolution_steps.hpp"
#include "ops/cpu/convolution_dataflows.hpp"
#include "ops/cpu/convolution_sums.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/rows_in_use.hpp"

namespace pumice {
namespace {

/// What meets on a device is on the same one.
void check_on_device(ConstTensorView input, const KernelMapView& map) {
  PUMICE_EXPECTS(map.device == input.device() && map.map != nullptr, "features are on ",
                 to_string(input.device()), " but the kernel map is on ", to_string(map.device),
                 ": build it from coordinates on the same device");
}

std::optional<Dataflow> wanted_dataflow(const ConvolutionOptions& options) {
  return options.plan != nullptr ? options.plan->dataflow : options.dataflow;
}

/// What a weight has to be of: the type of the input, or f32 where that is rounded on the way.
DType weight_type(ConstTensorView input, ConstTensorView weight,
                  const ConvolutionOptions& options) {
  const bool halves = input.dtype() == DType::f16 || input.dtype() == DType::bf16;
  const bool packs =
      checks::on_cuda(input) && options.groups == 1 &&
      wanted_dataflow(options).value_or(Dataflow::implicit_gemm) == Dataflow::implicit_gemm;
  const bool rounds = options.rounds_weight && halves && packs && weight.dtype() == DType::f32;
  return rounds ? DType::f32 : input.dtype();
}

void check_tf32(const ConvolutionOptions& options, DType dtype) {
  PUMICE_EXPECTS(!options.numerics.tf32 || dtype == DType::f32,
                 "tf32 is a way to multiply f32, and features are ", name_of(dtype),
                 ": leave tf32 out, or convert them");
}

void check_on_host(const KernelMapView& map, const ConvolutionOptions& options) {
  PUMICE_EXPECTS(!options.numerics.tf32,
                 "tf32 is for tensor cores, and features are on the CPU: leave tf32 out");
  PUMICE_EXPECTS(map.device.kind == DeviceKind::cpu, "the kernel map is on ", to_string(map.device),
                 " but features are on the CPU: copy_to brings them there");
}

/// Of a product without a map.
std::optional<RowCountRef> used_rows(const RelationView& relation,
                                     const ConvolutionProblem& problem) {
  if (!problem.identity) return std::nullopt;
  return cuda::output_rows_of(relation);
}

void check_device(ConstTensorView input, ConstTensorView weight, const KernelMapView& map,
                  const ConvolutionOptions& options) {
  cuda::element_type(input.dtype(), "convolution", "features");
  check_on_device(input, map);
  check_tf32(options, input.dtype());
  checks::same_device(weight, input, "convolution", "weight", "features");
  checks::same_device(options.epilogue.scale, input, "convolution", "scale", "features");
  checks::same_device(options.epilogue.shift, input, "convolution", "bias", "features");
  checks::same_device(options.epilogue.residual, input, "convolution", "residual", "features");
}

void check_where_it_runs(ConstTensorView input, ConstTensorView weight, const KernelMapView& map,
                         const ConvolutionOptions& options) {
  if (checks::on_cuda(input)) {
    check_device(input, weight, map, options);
  } else {
    check_on_host(map, options);
  }
}

/// Forward and input gradient are the same product, on a map and on its transpose.
Tensor multiply(ConstTensorView input, ConstTensorView weight, const KernelMapView& map,
                const ConvolutionProblem& problem, const ConvolutionPlan& plan,
                const ConvolutionOptions& options, const Place& place) {
  const bool transposes = problem.direction == Direction::input_gradient;
  PlanRecord::add(problem.direction, plan);
  const RelationView relation = relation_of(map);
  Tensor output = place.make({map.out_rows, problem.out_channels}, input.dtype(), input.stream());
  if (checks::on_cuda(input)) {
    cuda::run({.input = input,
               .second = options.second,
               .weight = weight,
               .transpose_weight = transposes,
               .kept = options.kept,
               .shortcut = options.shortcut,
               .epilogue = options.epilogue,
               .output = output.view(),
               .rows = used_rows(relation, problem)},
              &relation, problem, plan);
  } else {
    cpu::run({.input = input,
              .weight = weight,
              .transpose_weight = transposes,
              .groups = options.groups,
              .kept = options.kept,
              .epilogue = options.epilogue,
              .output = output.view()},
             relation, plan);
  }
  return output;
}

}   // namespace

Tensor convolution(ConstTensorView features, ConstTensorView weight, const KernelMapView& map,
                   const ConvolutionOptions& options, const Place& place) {
  check_lists(map, "convolution");
  check_features("features", features, {"map.in_rows", map.in_rows});
  check_weight(weight, map, options.groups,
               {"the features are", weight_type(features, weight, options)});
  check_more_inputs(options, features, map.out_rows, weight.extent(2),
                    weight_type(features, options.shortcut.weight, options));
  const ConvolutionProblem problem = convolution_problem(features, weight, map, options);
  PUMICE_EXPECTS(weight.extent(1) * options.groups == problem.in_channels, "weight ",
                 to_string(weight.shape()), " in ", options.groups, " groups takes ",
                 weight.extent(1) * options.groups, " input channels, but features have ",
                 problem.in_channels, ": give [offsets, input channels / groups, output channels]");
  check_epilogue(options.epilogue, map.out_rows, weight.extent(2), features.dtype());
  check_where_it_runs(features, weight, map, options);
  const PlanPtr plan = plan_of(problem, map, options);
  if (problem.has_more_inputs() && !plan->fuses_inputs)
    return convolution_in_steps(features, weight, map, *plan, options, place);
  return multiply(features, weight, map, problem, *plan, options, place);
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
  const ConvolutionProblem problem =
      convolution_input_gradient_problem(grad_output, weight, map, options);
  check_where_it_runs(grad_output, weight, backwards, options);
  return multiply(grad_output, weight, backwards, problem, *plan_of(problem, backwards, options),
                  options, place);
}

namespace {

void check_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                           const KernelMapView& map, const ConvolutionOptions& options) {
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
    cuda::element_type(features.dtype(), "weight gradient", "features");
    check_on_device(features, map);
    check_tf32(options, features.dtype());
  } else {
    check_on_host(map, options);
  }
}

Shape weight_shape(const ConvolutionProblem& problem, std::int64_t offsets) {
  return {offsets, problem.in_channels / problem.groups, problem.out_channels};
}

}   // namespace

Tensor convolution_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                   const KernelMapView& map, const ConvolutionOptions& options,
                                   const Place& place) {
  check_weight_gradient(features, grad_output, map, options);
  const ConvolutionProblem problem =
      convolution_weight_gradient_problem(features, grad_output, map, options);
  const PlanPtr plan = plan_of(problem, map, options);
  PlanRecord::add(problem.direction, *plan);
  const bool widens = options.wide_weight_gradient && features.dtype() != DType::f64;
  const DType result_type = widens ? DType::f32 : features.dtype();
  const Shape shape = weight_shape(problem, map.offsets);
  const RelationView relation = relation_of(map);   // whose lists were checked above
  if (checks::on_cuda(features)) {
    Tensor result = place.make(shape, result_type, features.stream());
    cuda::run({.features = features,
               .grad_output = grad_output,
               .result = result.view(),
               .is_zero = place.is_zeroed()},
              &relation, problem, *plan);
    return result;
  }
  if (result_type == features.dtype())
    return weight_gradient(features, grad_output, relation, options.groups, place);
  Tensor result = place.make(shape, result_type, features.stream());
  convert_on_host(result.view(), weight_gradient(features, grad_output, relation, options.groups));
  return result;
}

Tensor bias_gradient(ConstTensorView grad_output, const RowCount* rows, const Place& place) {
  check_features("grad_output", grad_output, {"its own", grad_output.rows()});
  const RowsInUse used(rows, grad_output, "bias_gradient");
  Tensor sums = place.make({grad_output.extent(1)}, checks::compute_dtype(grad_output.dtype()),
                           grad_output.stream());
  if (!checks::on_cuda(grad_output)) {
    cpu::sum_rows(used.of(grad_output), sums.view());
    return sums;
  }
  jit::DeviceRunner runner = cuda::runner_for(grad_output);
  cuda::sum_items(runner, {.rows = used.ref()}, used.of(grad_output), false, sums.view());
  return sums;
}

}   // namespace pumice
