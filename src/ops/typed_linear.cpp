// A convolution in which every row meets itself through one offset, its type: it is described and
// planned as such, and its products are stored, since no row has two.
#include <pumice/ops/typed_linear.hpp>

#include <memory>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/kernels/weight_gradient.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/checks.hpp"
#include "ops/cpu/convolution_dataflows.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/sources.hpp"
#include "ops/planned_call.hpp"

namespace pumice {
namespace {

void check_rows(ConstTensorView rows, const TypedRows& types, const TypedLinearOptions& options,
                const char* op, const char* name) {
  checks::matrix(rows, op, name);
  PUMICE_EXPECTS(rows.rows() == types.rows(), op, ": ", name, " has ", rows.rows(), " rows, and ",
                 types.rows(), " rows have types: give one row for each");
  const Device device = types.stream().device;
  PUMICE_EXPECTS(rows.device() == device, op, ": ", name, " is on ", to_string(rows.device()),
                 " and the types of rows on ", to_string(device),
                 ": copy_to brings one to the other");
  if (checks::on_cuda(rows)) cuda::element_type(rows.dtype(), op, name);
  PUMICE_EXPECTS(!options.numerics.tf32 || (checks::on_cuda(rows) && rows.dtype() == DType::f32),
                 op, ": tf32 is a way to multiply f32 on a device, and ", name, " is ",
                 name_of(rows.dtype()), " on ", to_string(rows.device()), ": leave tf32 out");
}

void check_weight(ConstTensorView weight, ConstTensorView rows, std::int64_t channels, int axis,
                  const TypedRows& types, const char* op, const char* name) {
  PUMICE_EXPECTS(weight.rank() == 3 && weight.extent(0) == types.types(), op, ": weight has shape ",
                 to_string(weight.shape()), ": give [", types.types(), " types, C_in, C_out]");
  checks::same_dtype(weight, rows.dtype(), op, "weight", name);
  checks::same_device(weight, rows, op, "weight", name);
  PUMICE_EXPECTS(weight.extent(axis) == channels, op, ": weight ", to_string(weight.shape()),
                 axis == 1 ? " takes " : " makes ", weight.extent(axis), " channels, and ", name,
                 " has ", channels, ": give as many");
}

ConvolutionProblem described(Direction direction, const TypedRows& types, std::int64_t in_channels,
                             std::int64_t out_channels, DType dtype, const Numerics& numerics) {
  return {.direction = direction,
          .in_rows = types.rows(),
          .out_rows = types.rows(),
          .pairs = types.rows(),
          .offsets = types.types(),
          .in_channels = in_channels,
          .out_channels = out_channels,
          .dtype = dtype,
          .numerics = numerics};
}

/// Of a product. On a device its tiles take one offset each, which is never split: a plan that
/// would split them, of few rows, is taken without.
PlanPtr plan_of_product(const ConvolutionProblem& problem, Device device) {
  const bool on_device = device.kind == DeviceKind::cuda;
  PlanPtr plan = choose(problem, target_of(device),
                        on_device ? Dataflow::implicit_gemm : Dataflow::fetch_on_demand);
  if (on_device && plan->write != Write::store) {
    auto whole = std::make_shared<ConvolutionPlan>(*plan);
    whole->splits = 1;
    whole->write = Write::store;
    plan = std::move(whole);
  }
  log_choice(problem, *plan, device);
  PlanRecord::add(problem.direction, *plan);
  return plan;
}

Tensor multiply(ConstTensorView rows, ConstTensorView weight, const TypedRows& types,
                ConvolutionProblem problem, const TypedLinearOptions& options, const Place& place) {
  problem.numerics.deterministic = false;   // nothing is added up but in a row's own order
  const bool transposes = problem.direction == Direction::input_gradient;
  Tensor output = place.make({types.rows(), problem.out_channels}, rows.dtype(), rows.stream());
  if (output.elements() == 0) return output;
  const PlanPtr plan = plan_of_product(problem, rows.device());
  const RelationView relation = types.relation();
  if (checks::on_cuda(rows)) {
    cuda::run({.input = rows,
               .weight = weight,
               .transpose_weight = transposes,
               .kept = options.kept,
               .output = output.view()},
              &relation, problem, *plan);
  } else {
    cpu::run({.input = rows,
              .weight = weight,
              .transpose_weight = transposes,
              .kept = options.kept,
              .output = output.view()},
             relation, *plan);
  }
  return output;
}

}   // namespace

Tensor typed_linear(ConstTensorView features, ConstTensorView weight, const TypedRows& types,
                    const TypedLinearOptions& options, const Place& place) {
  const char* const op = "typed_linear";
  check_rows(features, types, options, op, "features");
  check_weight(weight, features, features.extent(1), 1, types, op, "features");
  return multiply(features, weight, types,
                  described(Direction::forward, types, features.extent(1), weight.extent(2),
                            features.dtype(), options.numerics),
                  options, place);
}

Tensor typed_linear_input_gradient(ConstTensorView grad_output, ConstTensorView weight,
                                   const TypedRows& types, const TypedLinearOptions& options,
                                   const Place& place) {
  const char* const op = "typed_linear_input_gradient";
  check_rows(grad_output, types, options, op, "grad_output");
  check_weight(weight, grad_output, grad_output.extent(1), 2, types, op, "grad_output");
  return multiply(grad_output, weight, types,
                  described(Direction::input_gradient, types, grad_output.extent(1),
                            weight.extent(1), grad_output.dtype(), options.numerics),
                  options, place);
}

Tensor typed_linear_weight_gradient(ConstTensorView features, ConstTensorView grad_output,
                                    const TypedRows& types, const TypedLinearOptions& options,
                                    const Place& place) {
  const char* const op = "typed_linear_weight_gradient";
  check_rows(features, types, options, op, "features");
  check_rows(grad_output, types, options, op, "grad_output");
  checks::same_dtype(grad_output, features.dtype(), op, "grad_output", "features");
  const ConvolutionProblem problem =
      described(Direction::weight_gradient, types, features.extent(1), grad_output.extent(1),
                features.dtype(), options.numerics);
  const RelationView relation = types.relation();
  if (!checks::on_cuda(features)) return weight_gradient(features, grad_output, relation, 1, place);
  Tensor result = place.make({types.types(), problem.in_channels, problem.out_channels},
                             features.dtype(), features.stream());
  if (result.elements() == 0) return result;
  const PlanPtr plan = choose(problem, target_of(features.device()));
  log_choice(problem, *plan, features.device());
  PlanRecord::add(problem.direction, *plan);
  cuda::run({.features = features,
             .grad_output = grad_output,
             .result = result.view(),
             .is_zero = place.is_zeroed()},
            &relation, problem, *plan);
  return result;
}

}   // namespace pumice
