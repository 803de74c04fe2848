// The kernel that a device is given is the one that the plan names: its source, its threads and its
// shared memory, looked at where the driver is called. What `PlanRecord` says is what was decided.
//
// Covers convolution and linear on a device.
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/ops/convolution.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/plan_record.hpp>

#include "jit/module.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/pair_sums.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "ops/device_map_pairs.hpp"
#include "plan/space/device_problem.hpp"
#include "support/watched_launches.hpp"

namespace pumice {
namespace {

using namespace test;

/// A kernel as the driver knows it, and how it has to be launched.
struct Expected {
  cuda::FunctionHandle kernel;
  int threads;
  int shared_bytes;
  int blocks_y;
};

cuda::FunctionHandle handle_of(const jit::Source& source, const char* name) {
  return reinterpret_cast<cuda::FunctionHandle>(
      jit::load(kGpu, source).kernel(name).loaded().handle);
}

/// Of a plan with a tile or a gradient.
Expected expected_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  if (plan.gradient) {
    const GradientSpec spec = cuda::gradient_spec(problem, plan);
    return {handle_of(cuda::source_of(spec), cuda::kGradientKernel), threads(spec),
            shared_bytes(spec, static_cast<std::int32_t>(problem.offsets)), gradient_tiles(spec)};
  }
  const TileSpec spec = cuda::tile_spec(problem, plan);
  return {handle_of(cuda::source_of(spec), cuda::kTileKernel), threads(spec), shared_bytes(spec),
          spec.groups * column_tiles(spec)};
}

/// What finishes the sums that a plan leaves in memory; null where it leaves none.
cuda::FunctionHandle finisher_of(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  const ElementType type = cuda::storage_element(problem.dtype);
  if (problem.direction == Direction::weight_gradient) {
    return plan.write == Write::slots
               ? handle_of(cuda::sum_slots_source_of(type), cuda::kSumSlotsKernel)
               : nullptr;
  }
  if (plan.write == Write::store) return nullptr;
  const bool is_of_pairs = plan.dataflow == Dataflow::fetch_on_demand && plan.write == Write::slots;
  return handle_of(cuda::finish_source_of(type),
                   is_of_pairs ? cuda::kFinishPairsKernel : cuda::kFinishKernel);
}

/// One submanifold layer of f16, and its three directions.
struct Layer {
  explicit Layer(StreamView stream)
      : map(submanifold_pair(33, stream)),
        x(copy_to(stream, chance_tensor({33, 16}, DType::f16, 1))),
        dy(copy_to(stream, chance_tensor({33, 16}, DType::f16, 2))),
        weight(copy_to(stream, chance_tensor({27, 16, 16}, DType::f16, 3))) {}

  ConvolutionProblem problem(Direction direction, const ConvolutionOptions& options) const {
    const KernelMapView view = map.gpu->view();
    switch (direction) {
      case Direction::forward: return convolution_problem(x, weight, view, options);
      case Direction::input_gradient:
        return convolution_input_gradient_problem(dy, weight, view, options);
      case Direction::weight_gradient: break;
    }
    return convolution_weight_gradient_problem(x, dy, view, options);
  }
  Tensor run(Direction direction, const ConvolutionOptions& options) const {
    const KernelMapView view = map.gpu->view();
    switch (direction) {
      case Direction::forward: return convolution(x, weight, view, options);
      case Direction::input_gradient: return convolution_input_gradient(dy, weight, view, options);
      case Direction::weight_gradient: break;
    }
    return convolution_weight_gradient(x, dy, view, options);
  }

  MapPair map;
  Tensor x, dy, weight;
};

using Launches = std::vector<WatchedLaunches::Launch>;

std::int64_t count(const Launches& launches, cuda::FunctionHandle kernel) {
  return std::count_if(launches.begin(), launches.end(),
                       [&](const auto& launch) { return launch.kernel == kernel; });
}

/// What ran `plan`: its kernel once, its finisher once, and none of `others`.
void expect_ran(const Launches& launches, const ConvolutionProblem& problem,
                const ConvolutionPlan& plan, const std::vector<ConvolutionPlan>& others) {
  SCOPED_TRACE(std::string(name_of(problem.direction)) + " " + plan.name());
  const Expected expected = expected_of(problem, plan);
  ASSERT_EQ(count(launches, expected.kernel), 1);
  const auto launch = std::find_if(launches.begin(), launches.end(),
                                   [&](const auto& one) { return one.kernel == expected.kernel; });
  EXPECT_EQ(static_cast<int>(launch->config.block_x), expected.threads);
  EXPECT_EQ(static_cast<int>(launch->config.shared_bytes), expected.shared_bytes);
  EXPECT_EQ(static_cast<int>(launch->config.grid_y), expected.blocks_y);
  const cuda::FunctionHandle finisher = finisher_of(problem, plan);
  if (finisher != nullptr) {
    EXPECT_EQ(count(launches, finisher), 1);
  }
  for (const ConvolutionPlan& other : others) {
    const cuda::FunctionHandle kernel = expected_of(problem, other).kernel;
    if (kernel != expected.kernel) {
      EXPECT_EQ(count(launches, kernel), 0) << other.name();
    }
    const cuda::FunctionHandle its_finisher = finisher_of(problem, other);
    if (its_finisher != nullptr && its_finisher != finisher) {
      EXPECT_EQ(count(launches, its_finisher), 0) << other.name();
    }
  }
}

/// One plan for each kernel and way of adding: on the emulator each is seconds to compile.
std::vector<ConvolutionPlan> plans_of(const ConvolutionProblem& problem) {
  std::vector<ConvolutionPlan> plans;
  std::set<std::string> kinds;
  for (const Candidate& one : candidates(problem, target_of(kGpu))) {
    if (!one.plan.tile && !one.plan.gradient) continue;   // cuBLAS
    const std::string kind = std::string(name_of(one.plan.dataflow)) +
                             std::to_string(static_cast<int>(one.plan.write)) +
                             (one.plan.splits > 1 ? " splits" : "");
    const bool is_new = kinds.insert(kind).second;
    if (is_new || !on_emulator() || plans.size() < 3) plans.push_back(one.plan);
  }
  return plans;
}

/// A layer runs the rules' plan where it is given none, and then each of the others.
template <class Layer, class Options>
void expect_runs_each_plan(const Layer& layer, Direction direction, Options options,
                           const ConvolutionProblem& problem, std::size_t least) {
  const std::vector<ConvolutionPlan> plans = plans_of(problem);
  EXPECT_GE(plans.size(), least);
  WatchedLaunches watched;
  PlanRecord record;
  const auto expect_this = [&](const ConvolutionPlan& plan) {
    layer.run(direction, options);
    const std::vector<RanPlan> ran = record.take();
    ASSERT_EQ(ran.size(), 1u);
    EXPECT_TRUE(ran[0].plan->runs_like(plan)) << ran[0].plan->name();
    expect_ran(watched.take(), problem, plan, plans);
  };
  expect_this(*choose_by_rules(problem, target_of(kGpu)));
  for (const ConvolutionPlan& plan : plans) {
    options.plan = &plan;
    expect_this(plan);
  }
}

TEST(PlannedKernelsGpu, are_what_the_driver_is_given) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Layer layer(stream);
  for (const Direction direction :
       {Direction::forward, Direction::input_gradient, Direction::weight_gradient}) {
    for (const bool deterministic : {false, true}) {
      const ConvolutionOptions options{.numerics = {.deterministic = deterministic}};
      expect_runs_each_plan(layer, direction, options, layer.problem(direction, options), 3);
    }
  }
}

/// A linear layer of f16, in one direction.
struct LinearLayer {
  explicit LinearLayer(StreamView stream)
      : x(copy_to(stream, chance_tensor({33, 16}, DType::f16, 1))),
        dy(copy_to(stream, chance_tensor({33, 32}, DType::f16, 2))),
        weight(copy_to(stream, chance_tensor({16, 32}, DType::f16, 3))) {}

  static ConvolutionProblem problem(Direction direction) {
    const bool back = direction == Direction::input_gradient;
    return linear_problem(direction, 33, back ? 32 : 16, back ? 16 : 32, DType::f16);
  }
  Tensor run(Direction direction, const LinearOptions& options) const {
    switch (direction) {
      case Direction::forward: return linear(x, weight, {}, options);
      case Direction::input_gradient: return linear_input_gradient(dy, weight, options);
      case Direction::weight_gradient: break;
    }
    return linear_weight_gradient(x, dy, options);
  }

  Tensor x, dy, weight;
};

TEST(PlannedKernelsGpu, are_those_of_linear_layers_too) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const LinearLayer layer(stream);
  for (const Direction direction :
       {Direction::forward, Direction::input_gradient, Direction::weight_gradient})
    expect_runs_each_plan(layer, direction, LinearOptions{}, LinearLayer::problem(direction), 2);
  const ConvolutionPlan of_gradient = plans_of(LinearLayer::problem(Direction::weight_gradient))[0];
  EXPECT_THROW(layer.run(Direction::forward, {.plan = &of_gradient}), UserError);
}

}   // namespace
}   // namespace pumice
