// Training in room for more rows than there are, as compiled steps do: outputs, running statistics
// and gradients are those of the rows alone, with NaN behind the rows of what goes in and of the
// gradients that come back.
// Covers counts in the layers of networks and in chains, on a device.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/chain.hpp>
#include <pumice/nn/convolution.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/normalization.hpp>
#include <pumice/nn/sequential.hpp>

#include "formats/cuda/map_plan.hpp"
#include "nn/chain_operands.hpp"
#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

Tensor on_host(const Tensor& tensor) {
  return copy_to_host(tensor, tensor.stream());
}

/// The first rows of a tensor on a device, on the host.
Tensor first_rows(const Tensor& tensor, std::int64_t rows) {
  return copy_to_host(
      ConstTensorView(tensor.raw(), tensor.dtype(), {rows, tensor.extent(1)}, tensor.stream()),
      tensor.stream());
}

/// [room, …] on a device: rows on the host, and bytes of ones behind them, which are NaN.
Tensor padded(const Tensor& rows, std::int64_t room, StreamView stream) {
  Tensor all({room, rows.extent(1)}, rows.dtype());
  std::memset(all.raw(), 0xff, all.bytes());
  if (rows.bytes() > 0) std::memcpy(all.raw(), rows.raw(), rows.bytes());
  return copy_to(stream, all);
}

/// Sets and maps for `x`, which a pass has made maps of, in room for more rows.
class InRoom {
 public:
  explicit InRoom(const SparseTensor& x)
      : rows_(x.rows()),
        room_(3 * rows_ + 5),
        stream_(x.features.stream()),
        word_(std::make_shared<Tensor>(
            copy_to(stream_, Tensor::full({1}, DType::i64, static_cast<double>(rows_))))),
        plan_(*x.maps, x.coordinates,
              {.rows = room_, .bounds = x.coordinates->options().bounds.value(), .margin = 2}),
        made_(plan_.make(
            padded(on_host(x.coordinates->coordinates()), room_, stream_),
            RowCount::on_device(std::shared_ptr<std::int64_t>(word_, word_->data<std::int64_t>()),
                                room_, kGpu))) {}

  std::int64_t room() const { return room_; }
  const cuda::MapPlan::Made& made() const { return made_; }
  Tensor tensor(const Tensor& rows) const { return padded(rows, room_, stream_); }
  SparseTensor input(const Tensor& rows) const {
    SparseTensor y(made_.input, tensor(rows), made_.maps);
    y.has_open_tail = true;
    return y;
  }

 private:
  std::int64_t rows_, room_;
  StreamView stream_;
  std::shared_ptr<Tensor> word_;
  cuda::MapPlan plan_;
  cuda::MapPlan::Made made_;
};

/// Every layer whose gradients are sums over rows.
class CountingLayers final : public Module {
 public:
  CountingLayers()
      : first_(add_child("first", convolution_block(submanifold(4, 8)))),
        down_(add_child("down", std::make_shared<Convolution>(halving(ConvolutionMode::strided)))),
        layer_norm_(add_child("layer_norm", std::make_shared<LayerNorm>(8))),
        up_(add_child("up", std::make_shared<Convolution>(halving(ConvolutionMode::inverse)))),
        instance_norm_(add_child("instance_norm", std::make_shared<InstanceNorm>(8))),
        batch_norm_(add_child("batch_norm", std::make_shared<BatchNorm>(16))),
        linear_(add_child("linear", std::make_shared<Linear>(16, 8))),
        last_(add_child("last", std::make_shared<Linear>(8, 5))) {}

  SparseTensor forward(SparseTensor x, Context& context) override {
    x = first_->forward(std::move(x), context);
    SparseTensor y = layer_norm_->forward(down_->forward(x, context), context);
    y = instance_norm_->forward(up_->forward(std::move(y), context), context);
    y = batch_norm_->forward(concatenate(y, x, context), context);
    y = silu_.forward(linear_->forward(std::move(y), context), context);
    return last_->forward(add(y, x, context), context);
  }

 private:
  static ConvolutionSpec halving(ConvolutionMode mode) {
    return {.in_channels = 8,
            .out_channels = 8,
            .window = {.size = axes(3, 2), .stride = axes(3, 2)},
            .mode = mode,
            .outputs = StridedOutputs::cell,
            .bias = true};
  }

  std::shared_ptr<Sequential> first_;
  std::shared_ptr<Convolution> down_;
  std::shared_ptr<LayerNorm> layer_norm_;
  std::shared_ptr<Convolution> up_;
  std::shared_ptr<InstanceNorm> instance_norm_;
  std::shared_ptr<BatchNorm> batch_norm_;
  std::shared_ptr<Linear> linear_;
  std::shared_ptr<Linear> last_;
  Activate silu_{Activation::silu};
};

struct Learned {
  Tensor output;   // of the rows in use
  Tensor of_input;
  std::vector<std::pair<std::string, Tensor>> gradients, statistics;
};

/// A pass there and back with a network of the same weights each time.
Learned pass(SparseTensor x, const Tensor& grad_output, std::int64_t rows, bool training,
             const Stream& stream) {
  CountingLayers network;
  initialize(network, 5);
  stir(network);
  network.to(stream);
  if (!training) network.eval();
  Context context{.record = true};
  context.numerics.deterministic = true;
  const NodePtr leaf = require_gradient(x);
  const SparseTensor y = network.forward(std::move(x), context);
  Learned result;
  result.output = first_rows(y.features, rows);
  backward(y.node, grad_output);
  result.of_input = first_rows(leaf->gradient(), rows);
  for (const NamedParameter& named : network.parameters()) {
    if (named.parameter->spec().trainable)
      result.gradients.emplace_back(named.name, on_host(named.parameter->gradient()));
    else
      result.statistics.emplace_back(named.name, on_host(named.parameter->value()));
  }
  return result;
}

void expect_close(const Tensor& actual, const Tensor& expected, const std::string& what) {
  EXPECT_LT(relative_difference(actual, expected), 2e-5) << what;
}

TEST(CountedTrainingGpu, of_layers_is_that_of_the_rows_alone) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor on_cpu = scene_for("minkunet42", on_emulator() ? 40 : 1500);
  const std::int64_t rows = on_cpu.rows();
  const Tensor grad_output = random_tensor({rows, 5}, DType::f32, 6);
  for (const bool training : {true, false}) {
    SCOPED_TRACE(training ? "in training" : "in evaluation");
    const SparseTensor x = on(on_cpu, DType::f32, stream);
    const Learned alone = pass(x, copy_to(stream, grad_output), rows, training, stream);
    const InRoom room(x);
    const Learned made =
        pass(room.input(on_cpu.features), room.tensor(grad_output), rows, training, stream);
    wait(stream);
    expect_close(made.output, alone.output, "output");
    expect_close(made.of_input, alone.of_input, "gradient of the input");
    ASSERT_EQ(made.gradients.size(), alone.gradients.size());
    for (std::size_t i = 0; i < made.gradients.size(); ++i)
      expect_close(made.gradients[i].second, alone.gradients[i].second, made.gradients[i].first);
    for (std::size_t i = 0; i < made.statistics.size(); ++i)
      expect_close(made.statistics[i].second, alone.statistics[i].second, made.statistics[i].first);
  }
}

constexpr std::int64_t kChannels = 8;

struct ChainMade {
  Tensor output, of_features;
  std::vector<Tensor> parameters, running;
};

ChainMade chain_pass(const MapCache& maps, const Tensor& features, const Tensor& grad_output,
                     std::int64_t rows) {
  const Chain chain({{.input = 0, .relu = true},
                     {.input = 2, .relu = true},
                     {.input = 3, .residual = 2, .relu = true},
                     {.input = 4, .second = 0, .relu = true}});
  // On a cube, to cells of two, back with a residual, and on a cube of that beside the features.
  const std::array weights{Shape{27, kChannels, kChannels}, Shape{8, kChannels, kChannels},
                           Shape{8, kChannels, kChannels}, Shape{27, 2 * kChannels, kChannels}};
  ChainOperands operands(weights, features.stream());
  const std::vector<KernelMapPtr> made = maps.maps();
  const std::vector<KernelMapView> views{made.at(0)->view(), made.at(1)->view(),
                                         transposed(made.at(1)->view()), made.at(0)->view()};
  const ChainInput input{.features = features, .maps = views, .numerics = {.deterministic = true}};
  const ChainTrained trained = chain.train(input, operands.parameters, operands.running);
  const ChainGradients gradients =
      chain.gradients({.grad_output = grad_output, .output = trained.output}, input,
                      operands.parameters, *trained.record);
  ChainMade result{first_rows(trained.output, rows), first_rows(gradients.features, rows), {}, {}};
  for (const Tensor& gradient : gradients.parameters)
    result.parameters.push_back(on_host(gradient));
  for (std::size_t i = 0; i < operands.owned.size(); ++i) {
    if (i % 6 == 3 || i % 6 == 4) result.running.push_back(on_host(operands.owned[i]));
  }
  return result;
}

TEST(CountedTrainingGpu, of_chains_is_that_of_the_rows_alone) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor scene = scene_for("minkunet42", on_emulator() ? 40 : 1500);
  const std::int64_t rows = scene.rows();
  const SparseTensor x = on(scene, DType::f32, stream);
  x.maps->submanifold(x.coordinates, submanifold_window(3, axes(3, 3), axes(3, 1)));
  x.maps->strided(x.coordinates, {.size = axes(3, 2), .stride = axes(3, 2)}, StridedOutputs::cell);
  const Tensor features = random_tensor({rows, kChannels}, DType::f32, 7);
  const Tensor grad_output = random_tensor({rows, kChannels}, DType::f32, 8);
  const ChainMade alone =
      chain_pass(*x.maps, copy_to(stream, features), copy_to(stream, grad_output), rows);
  const InRoom room(x);
  const ChainMade made =
      chain_pass(*room.made().maps, room.tensor(features), room.tensor(grad_output), rows);
  wait(stream);
  expect_close(made.output, alone.output, "output");
  expect_close(made.of_features, alone.of_features, "gradient of the features");
  for (std::size_t i = 0; i < alone.parameters.size(); ++i)
    expect_close(made.parameters.at(i), alone.parameters[i], "parameter " + std::to_string(i));
  for (std::size_t i = 0; i < alone.running.size(); ++i)
    expect_close(made.running.at(i), alone.running[i], "statistics " + std::to_string(i));
}

}   // namespace
}   // namespace pumice::nn
