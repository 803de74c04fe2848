// Sparse convolution and its gradients: describe the problem, ask for a plan, run it.
#include <pumice/ops/convolution.hpp>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "ops/checks.hpp"
#include "ops/convolution_checks.hpp"
#include "ops/cpu/convolution_dataflows.hpp"
#include "ops/cpu/convolution_sums.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

ConvolutionProblem describe(Direction direction, const KernelMapView& map, std::int64_t in_channels,
                            std::int64_t out_channels, std::int64_t groups, DType dtype) {
  const bool all_meet = map.device.kind == DeviceKind::cuda || map.pairs() == map.in_rows;
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
          .identity = identity};
}

ConvolutionPlan plan_for(const ConvolutionProblem& problem, const ConvolutionOptions& options) {
  ConvolutionPlan plan = plan_convolution(problem, options.dataflow);
  if (options.chosen != nullptr) *options.chosen = plan;
  if (logging(LogTopic::plan)) log(LogTopic::plan, explain(problem, plan));
  return plan;
}

/// What meets on a device is on the same one.
void check_on_device(ConstTensorView input, const KernelMapView& map) {
  PUMICE_EXPECTS(map.device == input.device() && map.map != nullptr, "features are on ",
                 to_string(input.device()), " but the kernel map is on ", to_string(map.device),
                 ": build it from coordinates on the same device");
}

void check_on_host(const KernelMapView& map) {
  PUMICE_EXPECTS(map.device.kind == DeviceKind::cpu, "the kernel map is on ", to_string(map.device),
                 " but features are on the CPU: copy_to brings them there");
}

/// On a device tiles of outputs run, sorted by mask; another dataflow cannot be asked for yet.
Tensor multiply_on_device(Direction direction, ConstTensorView input, ConstTensorView weight,
                          const KernelMapView& map, const ConvolutionProblem& problem,
                          const ConvolutionOptions& options) {
  check_on_device(input, map);
  checks::same_device(weight, input, "convolution", "weight", "features");
  checks::same_device(options.epilogue.scale, input, "convolution", "scale", "features");
  checks::same_device(options.epilogue.shift, input, "convolution", "bias", "features");
  checks::same_device(options.epilogue.residual, input, "convolution", "residual", "features");
  PUMICE_EXPECTS(!options.dataflow || *options.dataflow == Dataflow::implicit_gemm, "dataflow ",
                 name_of(*options.dataflow), " runs on the CPU alone in this version; ",
                 name_of(Dataflow::implicit_gemm), " runs on ", to_string(input.device()));
  const bool takes_map =
      !problem.identity ||
      cuda::is_depthwise(options.groups, problem.in_channels, problem.out_channels);
  Tensor output({map.out_rows, problem.out_channels}, input.dtype(), input.stream());
  ConvolutionPlan plan{.dataflow = Dataflow::implicit_gemm, .sort_by_mask = true};
  plan.kernel = cuda::run({.input = input,
                           .weight = weight,
                           .transpose_weight = direction == Direction::input_gradient,
                           .groups = options.groups,
                           .kept = options.tile_weights,
                           .epilogue = options.epilogue,
                           .output = output.view()},
                          takes_map ? &map : nullptr);
  plan.reason = "the one dataflow on a device; its tile by the rows and channels";
  if (options.chosen != nullptr) *options.chosen = plan;
  if (logging(LogTopic::plan)) log(LogTopic::plan, plan.name() + ": " + plan.reason);
  return output;
}

/// Forward and input gradient are the same product, on a map and on its transpose.
Tensor multiply(Direction direction, ConstTensorView input, ConstTensorView weight,
                const KernelMapView& map, std::int64_t out_channels,
                const ConvolutionOptions& options) {
  const ConvolutionProblem problem =
      describe(direction, map, input.extent(1), out_channels, options.groups, input.dtype());
  if (checks::on_cuda(input))
    return multiply_on_device(direction, input, weight, map, problem, options);
  check_on_host(map);
  if (options.packed != nullptr) {
    check_packed(*options.packed, map.offsets, problem.in_channels, out_channels, options.groups,
                 input.dtype());
  }
  const ConvolutionPlan plan = plan_for(problem, options);
  Tensor output({map.out_rows, out_channels}, input.dtype());
  cpu::run({.input = input,
            .weight = weight,
            .transpose_weight = direction == Direction::input_gradient,
            .groups = options.groups,
            .packed = options.packed,
            .epilogue = options.epilogue,
            .output = output.view()},
           map, plan);
  return output;
}

}   // namespace

Tensor convolution(ConstTensorView features, ConstTensorView weight, const KernelMapView& map,
                   const ConvolutionOptions& options) {
  check_features("features", features, {"map.in_rows", map.in_rows});
  check_weight(weight, map, options.groups, {"the features are", features.dtype()});
  PUMICE_EXPECTS(weight.extent(1) * options.groups == features.extent(1), "weight ",
                 to_string(weight.shape()), " in ", options.groups, " groups takes ",
                 weight.extent(1) * options.groups, " input channels, but features have ",
                 features.extent(1), ": give [offsets, input channels / groups, output channels]");
  check_epilogue(options.epilogue, map.out_rows, weight.extent(2), features.dtype());
  return multiply(Direction::forward, features, weight, map, weight.extent(2), options);
}

Tensor convolution_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                  const KernelMapView& map, const ConvolutionOptions& options) {
  check_features("grad_output", grad_output, {"map.out_rows", map.out_rows});
  check_weight(weight, map, options.groups, {"grad_output is", grad_output.dtype()});
  PUMICE_EXPECTS(weight.extent(2) == grad_output.extent(1), "weight ", to_string(weight.shape()),
                 " makes ", weight.extent(2), " output channels, but grad_output has ",
                 grad_output.extent(1), ": give the weight of the forward convolution");
  check_no_epilogue(options.epilogue);
  return multiply(Direction::input_gradient, grad_output, weight, transposed(map),
                  weight.extent(1) * options.groups, options);
}

Tensor convolution_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                   const KernelMapView& map, const ConvolutionOptions& options) {
  check_features("features", features, {"map.in_rows", map.in_rows});
  check_features("grad_output", grad_output, {"map.out_rows", map.out_rows});
  PUMICE_EXPECTS(features.dtype() == grad_output.dtype(), "features are ",
                 name_of(features.dtype()), " but grad_output is ", name_of(grad_output.dtype()),
                 ": convert one of them");
  checks::same_device(grad_output, features, "convolution_weight_gradient", "grad_output",
                      "features");
  check_groups("features", features.extent(1), options.groups);
  check_groups("grad_output", grad_output.extent(1), options.groups);
  check_no_epilogue(options.epilogue);
  const ConvolutionProblem problem =
      describe(Direction::weight_gradient, map, features.extent(1), grad_output.extent(1),
               options.groups, features.dtype());
  if (!checks::on_cuda(features)) {
    check_on_host(map);
    plan_for(problem, options);
    return weight_gradient(features, grad_output, map, options.groups);
  }
  check_on_device(features, map);
  ConvolutionPlan plan = plan_convolution(problem, options.dataflow);
  Tensor result({map.offsets, features.extent(1) / options.groups, grad_output.extent(1)},
                features.dtype(), features.stream());
  plan.kernel = cuda::run({.features = features,
                           .grad_output = grad_output,
                           .groups = options.groups,
                           .deterministic = options.deterministic,
                           .result = result.view()},
                          &map);
  if (options.chosen != nullptr) *options.chosen = plan;
  if (logging(LogTopic::plan)) log(LogTopic::plan, plan.name() + ": " + plan.reason);
  return result;
}

Tensor bias_gradient(ConstTensorView grad_output) {
  check_features("grad_output", grad_output, {"its own", grad_output.rows()});
  if (!checks::on_cuda(grad_output)) return cpu::sum_rows(grad_output);
  Tensor sums({grad_output.extent(1)}, DType::f32, grad_output.stream());
  jit::DeviceRunner runner = cuda::runner_for(grad_output);
  cuda::sum_items(runner, cuda::all_rows(grad_output), grad_output, false, sums.view());
  return sums;
}

}   // namespace pumice
