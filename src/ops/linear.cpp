// Checks the arguments of linear layers and hands them to the back end.
#include <pumice/ops/linear.hpp>

#include <optional>

#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/linear.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/planned_call.hpp"
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

std::optional<RowCountRef> used_rows(const LinearOptions& options, ConstTensorView features) {
  if (options.rows == nullptr) return std::nullopt;
  PUMICE_EXPECTS(options.rows->capacity() == features.rows(), "linear: rows counts within ",
                 options.rows->capacity(), " and features have ", features.rows(),
                 " rows; give the count of these features");
  return options.rows->ref();
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
    if (records_calls())
      note_call({.problem = product.problem, .plan = product.plan, .map = nullptr});
  }
  PlanRecord::add(direction, *product.plan);
  return product;
}

template <class View> View first_rows(const View& view, std::int64_t count) {
  return View(view.raw(), view.dtype(), {count, view.extent(1)}, view.stream());
}

void run_on_device(Direction direction, ConstTensorView features, ConstTensorView weight,
                   bool transpose, ConstTensorView bias, const LinearOptions& options,
                   TensorView output) {
  const PlannedProduct product = planned(direction, features, output.extent(1), options, "linear");
  std::optional<RowCountRef> rows = used_rows(options, features);
  if (rows && product.plan->dataflow == Dataflow::gather_gemm_scatter) {
    // cuBLAS takes the number of rows from the host.
    const std::int64_t count = options.rows->wait_for_host(features.stream());
    features = first_rows(features, count);
    output = first_rows(output, count);
    rows.reset();
  }
  const ConstTensorView slices(weight.raw(), weight.dtype(),
                               {1, weight.extent(0), weight.extent(1)}, weight.stream());
  cuda::run({.input = features,
             .weight = slices,
             .transpose_weight = transpose,
             .kept = options.kept,
             .epilogue = {.shift = bias},
             .output = output,
             .rows = rows},
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
  if (checks::on_cuda(grad_output)) {
    run_on_device(Direction::input_gradient, grad_output, weight, transpose, {}, options,
                  grad.view());
  } else {
    cpu::linear(grad_output, weight, transpose, {}, grad.view());
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
  if (checks::on_cuda(features)) {
    run_on_device(Direction::forward, features, weight, false, bias, options, output.view());
  } else {
    cpu::linear(features, weight, false, bias, output.view());
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
  if (checks::on_cuda(features)) {
    run_on_device(Direction::forward, features, weight, true, bias, options, output.view());
  } else {
    cpu::linear(features, weight, true, bias, output.view());
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
  if (!checks::on_cuda(features)) {
    cpu::linear_weight_gradient(features, grad_output, grad.view());
  } else if (grad.elements() > 0) {
    const PlannedProduct product =
        planned(Direction::weight_gradient, features, grad_output.extent(1), options, op);
    cuda::run({.features = features, .grad_output = grad_output, .result = grad.view()}, nullptr,
              product.problem, *product.plan);
  }
  return grad;
}

Tensor linear_bias_gradient(ConstTensorView grad_output, const Place& place) {
  checks::matrix(grad_output, "linear_bias_gradient", "grad_output");
  Tensor sums = place.make({grad_output.extent(1)}, checks::compute_dtype(grad_output.dtype()),
                           grad_output.stream());
  if (checks::on_cuda(grad_output)) {
    jit::DeviceRunner runner = cuda::runner_for(grad_output);
    cuda::sum_items(runner, cuda::all_rows(grad_output), grad_output, false, sums.view());
  } else {
    cpu::column_sum(grad_output, sums.view());
  }
  return sums;
}

}   // namespace pumice
