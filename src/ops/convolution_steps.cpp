// One step for each input that is not alone.
#include "ops/convolution_steps.hpp"

#include <array>
#include <initializer_list>
#include <numeric>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/plan/choose.hpp>

#include "ops/checks.hpp"
#include "ops/cuda/convolution.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/rows.hpp"
#include "ops/cuda/sources.hpp"

namespace pumice {
namespace {

/// Every row meets itself.
Tensor multiply_rows(ConstTensorView rows, ConstTensorView weight,
                     const ConvolutionOptions& options) {
  const std::int64_t count = rows.rows();
  if (checks::on_cuda(rows)) {
    Tensor output({count, weight.extent(2)}, rows.dtype(), rows.stream());
    const ConvolutionProblem problem =
        linear_problem(Direction::forward, count, rows.extent(1), weight.extent(2), rows.dtype(),
                       {.numerics = options.numerics});
    cuda::run({.input = rows,
               .weight = weight,
               .kept = options.kept,
               .epilogue = options.epilogue,
               .output = output.view()},
              nullptr, problem, *choose(problem, target_of(rows.device())));
    return output;
  }
  std::vector<std::int32_t> same(static_cast<std::size_t>(count));
  std::iota(same.begin(), same.end(), 0);
  const std::array<std::int64_t, 2> begin{0, count};
  return convolution(rows, weight,
                     {.offsets = 1,
                      .in_rows = count,
                      .out_rows = count,
                      .offset_begin = begin,
                      .in = same,
                      .out = same,
                      .sorted_by_out = true,
                      .sorted_by_in = true,
                      .has_identity_offset = true},
                     options);
}

/// The sum of a shortcut, in an output's place, and the residual on top.
Tensor shortcut_residual(const KernelMapView& map, const ConvolutionOptions& options) {
  const Shortcut& shortcut = options.shortcut;
  const ConstTensorView residual = options.epilogue.residual;
  if (checks::on_cuda(shortcut.features))
    close_tails(*out_sites(map), {shortcut.features, shortcut.second, residual});
  Tensor joined;
  if (shortcut.second.defined()) joined = concatenate(shortcut.features, shortcut.second);
  Tensor rounded;   // where no kernel rounds it on the way
  if (shortcut.weight.dtype() != shortcut.features.dtype()) {
    rounded = Tensor(shortcut.weight.shape(), shortcut.features.dtype(), shortcut.weight.stream());
    cuda::convert(shortcut.weight, 1.0, rounded.view());
  }
  return multiply_rows(joined.defined() ? joined.view() : shortcut.features,
                       rounded.defined() ? rounded.view() : shortcut.weight,
                       {.epilogue = {.scale = shortcut.scale, .residual = residual},
                        .kept = shortcut.kept,
                        .numerics = options.numerics});
}

}   // namespace

void close_tails(const CoordinateSet& set, std::initializer_list<ConstTensorView> features) {
  const RowCount& rows = set.rows();
  if (rows.host_knows()) return;
  for (const ConstTensorView& each : features) {
    if (!each.defined()) continue;
    jit::DeviceRunner runner = cuda::runner_for(each);
    cuda::clear_tail(runner, rows.ref(), each);
  }
}

Tensor concatenate_inputs(ConstTensorView features, ConstTensorView second,
                          const KernelMapView& map) {
  if (checks::on_cuda(features)) close_tails(*in_sites(map), {features, second});
  return concatenate(features, second);
}

Tensor convolution_in_steps(ConstTensorView features, ConstTensorView weight,
                            const KernelMapView& map, const ConvolutionPlan& plan,
                            ConvolutionOptions options, const Place& place) {
  options.plan = &plan;
  options.dataflow.reset();
  Tensor joined;
  Tensor residual;
  if (options.second.defined()) {
    joined = concatenate_inputs(features, options.second, map);
    features = joined.view();
    options.second = {};
  }
  if (options.shortcut.features.defined()) {
    residual = shortcut_residual(map, options);
    options.epilogue.residual = residual.view();
    options.shortcut = {};
  }
  return convolution(features, weight, map, options, place);
}

}   // namespace pumice
