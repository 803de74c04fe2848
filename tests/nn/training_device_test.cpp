// Networks that are trained on a CUDA device: the CPU's losses and gradients from the same calls.
// Covers the tape and the layers of networks on a device.
#include <cmath>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/convolution.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/normalization.hpp>
#include <pumice/nn/pooling.hpp>
#include <pumice/ops/elementwise.hpp>

#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;

constexpr int kSteps = 4;
constexpr double kRate = 0.05;

struct History {
  std::vector<double> losses;
  std::map<std::string, Tensor> first;   // gradients of the first step, on the host
};

Tensor on_host(const Tensor& tensor) {
  return tensor.device().kind == DeviceKind::cuda ? copy_to_host(tensor, tensor.stream()) : tensor;
}

double sum_of_squares(const Tensor& tensor) {
  const Tensor wide = on_host(tensor).to(DType::f64);
  double sum = 0;
  for (const double value : wide.span<double>())
    sum += value * value;
  return sum;
}

/// Gradient descent on the mean of (y - target)², with operators of the library alone.
History train(Module& network, const SparseTensor& x, const Tensor& target, int steps = kSteps,
              Context context = {}) {
  History history;
  context.record = true;
  const double share = 1 / static_cast<double>(target.elements());
  network.train();
  for (int step = 0; step < steps; ++step) {
    network.clear_gradients();
    const SparseTensor y = network.forward(x, context);
    const Tensor miss = subtract(y.features, target);
    history.losses.push_back(sum_of_squares(miss) * share);
    backward(y.node, scale(miss, 2 * share));
    for (const NamedParameter& named : network.parameters()) {
      const Tensor& gradient = named.parameter->gradient();
      if (!named.parameter->spec().trainable) continue;
      EXPECT_TRUE(gradient.defined()) << named.name;
      if (step == 0) history.first.emplace(named.name, on_host(gradient));
      add_in_place(named.parameter->edit().view(),
                   convert(scale(gradient, -kRate), named.parameter->value().dtype()));
    }
  }
  return history;
}

/// |a - b| / |b|, both as vectors.
double distance(const Tensor& a, const Tensor& b) {
  const Tensor difference = subtract(a.to(DType::f64), b.to(DType::f64));
  return std::sqrt(sum_of_squares(difference) / std::max(sum_of_squares(b), 1e-300));
}

struct Problem {
  SparseTensor x;
  Tensor target;
};

Problem make_problem(std::int64_t sites) {
  const SparseTensor x = scene_for("minkunet42", sites);
  return {x, random_tensor({x.rows(), MinkUNet42Options{}.classes}, DType::f32, 5)};
}

std::shared_ptr<Module> untrained(DType type) {
  auto network = make_network("minkunet42", {.widths = kSmall, .seed = 4});
  stir(*network);
  network->to(type);
  return network;
}

History train_on_host(const Problem& problem, DType type) {
  SparseTensor x = problem.x;
  x.features = x.features.to(type);
  return train(*untrained(type), x, problem.target.to(type));
}

History train_on_device(const Problem& problem, DType type, StreamView stream) {
  const auto network = untrained(type);
  network->to(stream);
  return train(*network, on(problem.x, type, stream), copy_to(stream, problem.target.to(type)));
}

double worst_distance(const History& history, const History& exact) {
  double worst = 0;
  for (const auto& [name, gradient] : exact.first)
    worst = std::max(worst, distance(history.first.at(name), gradient));
  return worst;
}

/// Convolutions of every kind, pooling and norms, down to one vector for each of four clouds.
std::shared_ptr<Module> cloud_network(Pooling pooling) {
  const KernelWindow halves{.size = axes(3, 2), .stride = axes(3, 2)};
  ConvolutionSpec depthwise = submanifold(8, 8);
  depthwise.groups = 8;
  depthwise.bias = true;
  auto network = std::make_shared<Sequential>(std::vector<ModulePtr>{
      std::make_shared<Convolution>(submanifold(4, 8)), std::make_shared<InstanceNorm>(8), relu(),
      std::make_shared<Pool>(pooling, halves), std::make_shared<Convolution>(depthwise),
      std::make_shared<LayerNorm>(8), std::make_shared<Activate>(Activation::silu),
      std::make_shared<Pool>(Pooling::average, halves), convolution_block(submanifold(8, 12)),
      std::make_shared<GlobalPool>(pooling), std::make_shared<Linear>(12, 3)});
  initialize(*network, 4);
  return network;
}

TEST(TrainingOnHost, LosesLittleInFloat) {
  const Problem problem = make_problem(3000);
  const History exact = train_on_host(problem, DType::f64);
  EXPECT_LT(exact.losses.back(), 0.99 * exact.losses.front());
  EXPECT_LT(worst_distance(train_on_host(problem, DType::f32), exact), 1e-4);   // 2.6e-6
}

struct Histories {
  History exact;
  History host;
};

/// One step of a network over clouds in f64 and in f32.
Histories clouds_on_host(const SparseTensor& x, const Tensor& target, Pooling pooling) {
  SparseTensor wide = x;
  wide.features = x.features.to(DType::f64);
  const auto exact = cloud_network(pooling);
  exact->to(DType::f64);
  return {train(*exact, wide, target.to(DType::f64), 1),
          train(*cloud_network(pooling), x, target, 1)};
}

constexpr Pooling kPoolings[] = {Pooling::max, Pooling::average, Pooling::sum};

TEST(TrainingOnHost, LosesLittleInPoolingAndEveryNorm) {
  const SparseTensor x = make_input(make_scene({.sites = 2000, .batches = 4}), 4);
  const Tensor target = random_tensor({4, 3}, DType::f32, 5);
  for (const Pooling pooling : kPoolings) {
    const Histories clouds = clouds_on_host(x, target, pooling);
    EXPECT_LT(worst_distance(clouds.host, clouds.exact), 1e-4);
  }
}

/// The measure is what f32 loses on the CPU against f64, through 42 layers of norms whose batch
/// decides. The CPU sums statistics in f64, though, and a device in f32 over the rows of a thread:
/// 5e-5 in a gradient is what the CPU's loss would be with sums of a few dozen roundings more.
TEST(TrainingGpu, gives_the_losses_and_gradients_of_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t sites : {400, 3000}) {
    const Problem problem = make_problem(sites);
    const History exact = train_on_host(problem, DType::f64);
    const History host = train_on_host(problem, DType::f32);
    const History device = train_on_device(problem, DType::f32, stream);
    const double own_loss = worst_distance(host, exact);
    ASSERT_EQ(device.first.size(), exact.first.size());
    for (const auto& [name, gradient] : exact.first)
      EXPECT_LT(distance(device.first.at(name), gradient), 4 * own_loss + 5e-5) << name;
    for (int step = 0; step < kSteps; ++step) {
      const auto at = static_cast<std::size_t>(step);
      const double own = std::abs(host.losses[at] - exact.losses[at]) / exact.losses[at];
      EXPECT_NEAR(device.losses[at] / exact.losses[at], 1, 4 * own + 1e-5) << "step " << step;
    }
    EXPECT_LT(device.losses.back(), 0.99 * device.losses.front());
  }
}

TEST(TrainingGpu, goes_through_pooling_and_every_norm) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor x = make_input(make_scene({.sites = 2000, .batches = 4}), 4);
  const Tensor target = random_tensor({4, 3}, DType::f32, 5);
  for (const Pooling pooling : kPoolings) {
    const auto [exact, host] = clouds_on_host(x, target, pooling);
    const auto network = cloud_network(pooling);
    network->to(stream);
    const History device = train(*network, on(x, DType::f32, stream), copy_to(stream, target), 1);
    const double own_loss = worst_distance(host, exact);
    for (const auto& [name, gradient] : exact.first)
      EXPECT_LT(distance(device.first.at(name), gradient), 4 * own_loss + 5e-5) << name;
    EXPECT_NEAR(device.losses[0] / exact.losses[0], 1, 1e-5);
  }
}

/// Half types round features and gradients once a layer: the loss falls as it does in f32.
TEST(TrainingGpu, learns_in_half_types) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Problem problem = make_problem(3000);
  const History exact = train_on_host(problem, DType::f32);
  for (const DType type : {DType::f16, DType::bf16}) {
    const History device = train_on_device(problem, type, stream);
    for (std::size_t step = 0; step < exact.losses.size(); ++step)
      EXPECT_NEAR(device.losses[step] / exact.losses[step], 1, 0.05) << name_of(type) << step;
  }
}

/// One switch of the context reaches every gradient.
TEST(TrainingGpu, gives_the_same_bits_every_time_where_it_is_asked_to) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor x = make_input(make_scene({.sites = 3000, .batches = 4}), 4);
  const Tensor target = copy_to(stream, random_tensor({4, 3}, DType::f32, 5));
  for (const std::optional<Dataflow> dataflow :
       {std::optional<Dataflow>(), std::optional(Dataflow::fetch_on_demand)}) {
    Context context;
    context.dataflow = dataflow;
    context.numerics.deterministic = true;
    std::vector<History> runs;
    for (int run = 0; run < 3; ++run) {
      const auto network = cloud_network(Pooling::max);
      network->to(stream);
      runs.push_back(train(*network, on(x, DType::f32, stream), target, 3, context));
    }
    for (const History& run : runs) {
      EXPECT_EQ(run.losses, runs.front().losses);
      for (const auto& [name, gradient] : runs.front().first)
        EXPECT_TRUE(same_bits(run.first.at(name), gradient)) << name;
    }
  }
}

/// Weights, features and gradients of f32 whose products are tf32: 10 bits of mantissa, as in f16.
TEST(TrainingGpu, learns_in_tf32) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Problem problem = make_problem(3000);
  const History exact = train_on_host(problem, DType::f32);
  const auto network = untrained(DType::f32);
  network->to(stream);
  Context context;
  context.numerics.tf32 = true;
  const History device = train(*network, on(problem.x, DType::f32, stream),
                               copy_to(stream, problem.target), kSteps, context);
  for (std::size_t step = 0; step < exact.losses.size(); ++step)
    EXPECT_NEAR(device.losses[step] / exact.losses[step], 1, 0.05) << step;
}

}   // namespace
}   // namespace pumice::nn
