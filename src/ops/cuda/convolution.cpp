// Which dataflow a plan names, and weight gradients.
#include "ops/cuda/convolution.hpp"

#include <pumice/shared/tile_limits.h>
#include <pumice/core/error.hpp>

#include "formats/cuda/device_formats.hpp"
#include "formats/cuda/identity_pairs.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/gradient_source.hpp"
#include "ops/cuda/elementwise.hpp"
#include "ops/cuda/product_steps.hpp"
#include "ops/cuda/sources.hpp"
#include "plan/cuda_architecture.hpp"
#include "plan/rules.hpp"
#include "plan/space/device_problem.hpp"

namespace pumice::cuda {
namespace {

void depthwise_gradient(jit::KernelRunner& runner, const WeightProduct& product,
                        const PairListRef& pairs) {
  PUMICE_EXPECTS(depthwise_gradient_shared_bytes(pairs.offsets) <=
                     block_shared_limit(architecture_bit(product.features.device())),
                 "no weight gradient kernel for a depthwise convolution of ", pairs.offsets,
                 " offsets: their table does not fit into the memory that a thread block has, so "
                 "use a smaller kernel, or the CPU");
  launch_depthwise_gradient(
      runner, element_type(product.features.dtype(), "weight gradient", "features"),
      {.pairs = pairs,
       .input = product.features.raw(),
       .grad = product.grad_output.raw(),
       .channels = static_cast<std::int32_t>(product.features.extent(1))},
      element_type(product.result.dtype(), "weight gradient", "result"), product.result.raw());
}

void sum_over(jit::KernelRunner& runner, const WeightProduct& product, const PairListRef& pairs,
              const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (problem.is_depthwise()) return depthwise_gradient(runner, product, pairs);
  const GradientSpec spec = gradient_spec(problem, plan);
  WeightGradient gradient{.pairs = pairs,
                          .input = product.features.raw(),
                          .grad = product.grad_output.raw(),
                          .result = product.result.raw(),
                          .type = element_type(product.result.dtype(), "weight gradient", "result"),
                          .is_zero = product.is_zero,
                          .share_blocks = plan.gradient->share_blocks};
  if (spec.write == Write::slots || gradient.type == ElementType::f32) {
    launch_gradient(runner, spec, gradient);
    return;
  }
  Tensor sums(product.result.shape(), DType::f32, product.result.stream());
  gradient.result = sums.raw();
  gradient.type = ElementType::f32;
  gradient.is_zero = false;
  launch_gradient(runner, spec, gradient);
  convert(sums, 1.0, product.result);
}

}   // namespace

void run(const TileProduct& product, const RelationView* relation,
         const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  // Depthwise kernels go through a map, and so does what multiplies pair by pair; of an identity
  // every output has one product, so that there is nothing to add up.
  const RelationView* const walked =
      problem.identity && !problem.is_depthwise() ? nullptr : relation;
  switch (plan.dataflow) {
    case Dataflow::implicit_gemm: return implicit_gemm(product, walked, problem, plan);
    case Dataflow::fetch_on_demand:
      return walked == nullptr ? implicit_gemm(product, nullptr, problem, plan)
                               : fetch_on_demand(product, *walked, problem, plan);
    case Dataflow::gather_gemm_scatter:
      return gather_gemm_scatter(product, problem.identity ? nullptr : relation, problem);
    case Dataflow::sum_over_pairs: break;
  }
  PUMICE_ENSURES(false, "dataflow ", name_of(plan.dataflow), " of a product");
}

void run(const WeightProduct& product, const RelationView* relation,
         const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  jit::DeviceRunner runner = runner_for(product.features);
  if (relation != nullptr) return sum_over(runner, product, pairs_of(*relation), problem, plan);
  const IdentityPairs pairs(runner,
                            product.rows.value_or(RowCountRef{nullptr, product.features.rows()}));
  sum_over(runner, product, pairs.ref(), problem, plan);
}

std::vector<PlannedKernel> kernels_for(const ConvolutionProblem& problem,
                                       std::uint32_t architecture) {
  const Target target = usual_target(architecture);
  const ElementType type = element_type(problem.dtype, "convolution", "features");
  std::vector<PlannedKernel> kernels;
  if (problem.direction == Direction::weight_gradient) {
    if (problem.is_depthwise()) return {planned_depthwise(type), planned_sums(type)};
    const Write write = choose_by_rules(problem, target)->write;
    for (const GradientSpec& spec : pickable_gradients(gradient_problem(problem, target, write)))
      kernels.push_back(planned(spec));
    if (problem.numerics.deterministic) kernels.push_back(planned_sums(type));
    return kernels;
  }
  if (problem.is_depthwise()) return {planned_depthwise(type)};
  kernels.push_back(planned_packing());
  const bool fuses = can_fuse_inputs(problem, target, Dataflow::implicit_gemm);
  const auto add_tiles = [&](Write write) {
    for (const TileSpec& spec :
         pickable_tiles(tile_problem(problem, target, Dataflow::implicit_gemm, write, fuses)))
      kernels.push_back(planned(spec));
  };
  add_tiles(Write::store);
  const PlanPtr of_few_rows = choose_by_rules(problem, target);
  if (of_few_rows->write != Write::store) {   // offsets are split, as long as there is room
    add_tiles(of_few_rows->write);
    kernels.push_back(planned_finish(type));
  }
  return kernels;
}

std::vector<PlannedKernel> kernels_of(const ConvolutionPlan& plan,
                                      const ConvolutionProblem& problem,
                                      std::uint32_t architecture) {
  const auto of = [&](const auto& spec) -> std::vector<PlannedKernel> {
    if (why_invalid(spec) != nullptr || (architectures(spec) & architecture) == 0) return {};
    return {planned(spec)};
  };
  if (plan.gradient) return of(gradient_spec(problem, plan));
  if (!plan.tile) return {};
  std::vector<PlannedKernel> kernels = of(tile_spec(problem, plan));
  if (!kernels.empty() && plan.write != Write::store)
    kernels.push_back(planned_finish(element_type(problem.dtype, "convolution", "features")));
  return kernels;
}

}   // namespace pumice::cuda
