// Checks the arguments of linear layers and hands them to the back end.
#include <pumice/ops/linear.hpp>

#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/linear.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/planned_call.hpp"
#include "ops/rows_in_use.hpp"
#include "ops/tune/call_recorder.hpp"

namespace pumice {
namespace {

void check_weight(ConstTensorView weight, ConstTensorView rows, const char* op, const char* name) {
  checks::matrix(rows, op, name);
  checks::matrix(weight, op, "weight");
  checks::same_dtype(weight, rows.dtype(), op, "weight", name);
  checks::same_device(weight, rows, op, "weight", name);
}

void check_options(const LinearOptions& options, ConstTensorView rows, const char* op) {
  PUMICE_EXPECTS(options.plan == nullptr || checks::on_cuda(rows), op,
                 ": a plan is for a device, and features are on the CPU; leave the plan out");
  if (!options.numerics.tf32) return;
  PUMICE_EXPECTS(checks::on_cuda(rows), op,
                 ": tf32 is for tensor cores, and features are on the CPU; leave tf32 out");
  PUMICE_EXPECTS(rows.dtype() == DType::f32, op,
                 ": tf32 is a way to multiply f32, and features are ", name_of(rows.dtype()),
                 "; leave tf32 out, or convert them");
}

struct PlannedProduct {
  ConvolutionProblem problem;
  PlanPtr plan;
};

/// Describes a product of `input` on its device, and finds its plan, of which record and tuner
/// learn.
PlannedProduct planned(Direction direction, ConstTensorView input, std::int64_t out_channels,
                       const LinearOptions& options, const char* op) {
  cuda::element_type(input.dtype(), op, "features");
  const Device device = input.device();
  PlannedProduct product{linear_problem(direction, input.rows(), input.extent(1), out_channels,
                                        input.dtype(), options),
                         nullptr};
  if (options.plan != nullptr) {
    product.plan = given_plan(*options.plan, product.problem, device);
  } else {
    product.plan = choose(product.problem, target_of(device));
    log_choice(product.problem, *product.plan, device);
    if (records_calls(device))
      note_call({.problem = product.problem, .plan = product.plan, .map = nullptr});
  }
  PlanRecord::add(direction, *product.plan);
  return product;
}

void run_on_device(Direction direction, ConstTensorView features, ConstTensorView weight,
                   bool transpose, ConstTensorView bias, const LinearOptions& options,
                   RowsInUse used, TensorView output) {
  const PlannedProduct product = planned(direction, features, output.extent(1), options, "linear");
  // cuBLAS takes the number of rows from the host.
  if (!used.host_knows() && product.plan->dataflow == Dataflow::gather_gemm_scatter)
    used = RowsInUse::first(options.rows->wait_for_host(features.stream()));
  const ConstTensorView slices(weight.raw(), weight.dtype(),
                               {1, weight.extent(0), weight.extent(1)}, weight.stream());
  cuda::run({.input = used.of(features),
             .weight = slices,
             .transpose_weight = transpose,
             .kept = options.kept,
             .epilogue = {.shift = bias},
             .output = used.of(output),
             .rows = used.ref()},
            nullptr, product.problem, *product.plan);
}

/// grad_output · W, or · Wᵀ where the weight is [C_in, C_out].
Tensor input_gradient(ConstTensorView grad_output, ConstTensorView weight, bool transpose,
                      const LinearOptions& options, const Place& place, const char* op) {
  check_options(options, grad_output, op);
  check_weight(weight, grad_output, op, "grad_output");
  const int out = transpose ? 1 : 0;
  checks::extent(grad_output, 1, weight.extent(out), op, "grad_output", "the C_out of the weight");
  Tensor grad = place.make({grad_output.rows(), weight.extent(1 - out)}, grad_output.dtype(),
                           grad_output.stream());
  const RowsInUse used(options.rows, grad_output, op);
  if (checks::on_cuda(grad_output)) {
    run_on_device(Direction::input_gradient, grad_output, weight, transpose, {}, options, used,
                  grad.view());
  } else {
    cpu::linear(used.of(grad_output), weight, transpose, {}, used.of(grad.view()));
  }
  return grad;
}

}   // namespace

ConvolutionProblem linear_problem(Direction direction, std::int64_t rows, std::int64_t in_channels,
                                  std::int64_t out_channels, DType dtype,
                                  const LinearOptions& options) {
  return {.direction = direction,
          .in_rows = rows,
          .out_rows = rows,
          .offsets = 1,
          .in_channels = in_channels,
          .out_channels = out_channels,
          .dtype = dtype,
          // Products add nothing up: every row meets one matrix.
          .numerics = {.deterministic = options.numerics.deterministic &&
                                        direction == Direction::weight_gradient,
                       .tf32 = options.numerics.tf32},
          .identity = true};
}

Tensor linear(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
              const LinearOptions& options, const Place& place) {
  check_weight(weight, features, "linear", "features");
  check_options(options, features, "linear");
  PUMICE_EXPECTS(weight.extent(0) == features.extent(1), "linear: weight has shape ",
                 to_string(weight.shape()), " but features has shape ", to_string(features.shape()),
                 "; weight is [C_in, C_out], did you pass the transposed one?");
  checks::parameter(bias, weight.extent(1), features.dtype(), "linear", "bias");
  checks::same_device(bias, features, "linear", "bias", "features");
  Tensor output =
      place.make({features.rows(), weight.extent(1)}, features.dtype(), features.stream());
  const RowsInUse used(options.rows, features, "linear");
  if (checks::on_cuda(features)) {
    run_on_device(Direction::forward, features, weight, false, bias, options, used, output.view());
  } else {
    cpu::linear(used.of(features), weight, false, bias, used.of(output.view()));
  }
  return output;
}

Tensor linear_transposed(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                         const LinearOptions& options, const Place& place) {
  const char* op = "linear_transposed";
  check_options(options, features, op);
  check_weight(weight, features, op, "features");
  checks::extent(weight, 1, features.extent(1), op, "weight", "the channels of the features");
  checks::parameter(bias, weight.extent(0), features.dtype(), op, "bias");
  checks::same_device(bias, features, op, "bias", "features");
  Tensor output =
      place.make({features.rows(), weight.extent(0)}, features.dtype(), features.stream());
  const RowsInUse used(options.rows, features, op);
  if (checks::on_cuda(features)) {
    run_on_device(Direction::forward, features, weight, true, bias, options, used, output.view());
  } else {
    cpu::linear(used.of(features), weight, true, bias, used.of(output.view()));
  }
  return output;
}

Tensor linear_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                             const LinearOptions& options, const Place& place) {
  return input_gradient(grad_output, weight, true, options, place, "linear_input_gradient");
}

Tensor linear_transposed_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                        const LinearOptions& options, const Place& place) {
  return input_gradient(grad_output, weight, false, options, place,
                        "linear_transposed_input_gradient");
}

Tensor linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                              const LinearOptions& options, const Place& place) {
  const char* op = "linear_weight_gradient";
  checks::matrix(features, op, "features");
  checks::matrix(grad_output, op, "grad_output");
  checks::same_device(grad_output, features, op, "grad_output", "features");
  checks::same_dtype(grad_output, features.dtype(), op, "grad_output", "features");
  checks::extent(grad_output, 0, features.rows(), op, "grad_output", "the rows of the features");
  check_options(options, features, op);
  Tensor grad =
      place.make({features.extent(1), grad_output.extent(1)}, features.dtype(), features.stream());
  const RowsInUse used(options.rows, features, op);
  if (!checks::on_cuda(features)) {
    cpu::linear_weight_gradient(used.of(features), used.of(grad_output), grad.view());
  } else if (grad.elements() > 0) {
    const PlannedProduct product =
        planned(Direction::weight_gradient, features, grad_output.extent(1), options, op);
    cuda::run({.features = used.of(features),
               .grad_output = used.of(grad_output),
               .result = grad.view(),
               .rows = used.ref()},
              nullptr, product.problem, *product.plan);
  }
  return grad;
}

Tensor linear_bias_gradient(ConstTensorView grad_output, const RowCount* rows, const Place& place) {
  const char* op = "linear_bias_gradient";
  checks::matrix(grad_output, op, "grad_output");
  const RowsInUse used(rows, grad_output, op);
  Tensor sums = place.make({grad_output.extent(1)}, checks::compute_dtype(grad_output.dtype()),
                           grad_output.stream());
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::sum_items(runner, {.rows = used.ref()}, used.of(grad_output), false, sums.view());
  } else {
    cpu::column_sum(used.of(grad_output), sums.view());
  }
  return sums;
}

}   // namespace pumice
