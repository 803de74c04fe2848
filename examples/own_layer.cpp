// A layer and a network of one's own, trained: one number for every voxel, its height above the
// road, from the intensity of the points and the shape of the neighbourhood.
#include <iostream>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pumice/core/parallel.hpp>
#include <pumice/nn/activation.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/sequential.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

using namespace pumice;

/// y = x · s, one learned factor s for each channel.
class ChannelScale final : public nn::Module {
 public:
  explicit ChannelScale(std::int64_t channels)
      : scale_(add_parameter("scale", {.shape = {channels}, .compute_type = true, .initial = 1})) {}

  nn::SparseTensor forward(nn::SparseTensor x, nn::Context& context) override {
    PUMICE_EXPECTS(x.dtype() == DType::f32, label(), ": features are ", name_of(x.dtype()),
                   "; this layer takes f32");
    PUMICE_EXPECTS(x.channels() == scale_->value().elements(), label(), ": features have ",
                   x.channels(), " channels, the layer takes ", scale_->value().elements());
    Tensor y = scaled(x.features, scale_->value());
    nn::NodePtr node;
    if (context.record) {   // how a gradient goes back: to the parameter, and to where x came from
      node = std::make_shared<nn::Node>(
          std::vector{x.node},
          [features = x.features, from = x.node, scale = scale_](const Tensor& gradient) {
            scale->accumulate(column_sums(features, gradient));
            if (from != nullptr) from->accumulate(scaled(gradient, std::as_const(*scale).value()));
          });
    }
    return x.with(std::move(y), std::move(node));
  }

 private:
  static Tensor scaled(const Tensor& x, const Tensor& scale) {
    Tensor y(x.shape(), DType::f32);
    const std::int64_t channels = x.extent(1);
    const float* in = x.data<float>();
    const float* factor = scale.data<float>();
    float* out = y.data<float>();
    parallel_for(x.rows(), 4096, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin * channels; i < end * channels; ++i) {
        out[i] = in[i] * factor[i % channels];
      }
    });
    return y;
  }

  static Tensor column_sums(const Tensor& left, const Tensor& right) {
    const std::int64_t channels = left.extent(1);
    std::vector<double> sums(static_cast<std::size_t>(channels));
    for (std::int64_t i = 0; i < left.elements(); ++i) {
      sums[static_cast<std::size_t>(i % channels)] +=
          static_cast<double>(left.data<float>()[i]) * static_cast<double>(right.data<float>()[i]);
    }
    return Tensor::from<double>(sums, {channels}).to(DType::f32);
  }

  nn::ParameterPtr scale_;
};

/// Two levels: down, up again onto the sites it came from, and the first features beside the last.
class HeightNetwork final : public nn::Module {
 public:
  HeightNetwork() {
    nn::ConvolutionSpec down{.in_channels = 16,
                             .out_channels = 32,
                             .window = {.size = axes(3, 2), .stride = axes(3, 2)},
                             .mode = nn::ConvolutionMode::strided};
    nn::ConvolutionSpec up = down;
    std::swap(up.in_channels, up.out_channels);
    up.mode = nn::ConvolutionMode::inverse;
    stem_ = add_child("stem", nn::convolution_block(nn::submanifold(1, 16)));
    down_ = add_child("down", nn::convolution_block(down));
    block_ = add_child("block", std::make_shared<nn::ResidualBlock>(32, 32));
    up_ = add_child("up", nn::convolution_block(up));
    scale_ = add_child("scale", std::make_shared<ChannelScale>(32));
    head_ = add_child("head", std::make_shared<nn::Linear>(32, 1));
    nn::initialize(*this, 1);
  }

  nn::SparseTensor forward(nn::SparseTensor x, nn::Context& context) override {
    x = stem_->forward(std::move(x), context);
    const nn::SparseTensor skip = x;
    x = block_->forward(down_->forward(std::move(x), context), context);
    x = nn::concatenate(up_->forward(std::move(x), context), skip, context);
    return head_->forward(scale_->forward(std::move(x), context), context);
  }

 private:
  nn::ModulePtr stem_, down_, block_, up_, scale_, head_;
};

/// Mean squared error and its gradient.
double loss(std::span<const float> value, std::span<const float> wanted,
            std::span<float> gradient) {
  double sum = 0;
  const auto count = static_cast<double>(value.size());
  for (std::size_t i = 0; i < value.size(); ++i) {
    const double miss = static_cast<double>(value[i]) - static_cast<double>(wanted[i]);
    sum += miss * miss;
    gradient[i] = static_cast<float>(2 * miss / count);
  }
  return sum / count;
}

void descend(const nn::Module& network, float rate) {
  for (const auto& [name, parameter] : network.parameters()) {
    if (!parameter->gradient().defined()) continue;
    const std::span<float> value = parameter->edit().span<float>();
    const std::span<const float> gradient = parameter->gradient().span<float>();
    for (std::size_t i = 0; i < value.size(); ++i)
      value[i] -= rate * gradient[i];
  }
}

int main() {
  const SensorModel sensor = SensorModel::beams32();
  const PointCloud sweep = simulate({.seed = 1, .sensor = sensor});
  const Tensor intensity = sweep.intensity.reshaped({sweep.size(), 1});
  const Voxels voxels = voxelize(sweep, intensity, {.size = {0.2f, 0.2f, 0.2f}});
  const CoordinateSetPtr sites = CoordinateSet::create(voxels.coordinates);

  std::vector<float> height(static_cast<std::size_t>(voxels.size()));
  for (std::size_t row = 0; row < height.size(); ++row) {
    const std::int32_t cell = voxels.coordinates.data<std::int32_t>()[row * 4 + 3];
    height[row] = 0.2f * static_cast<float>(cell) + static_cast<float>(sensor.height_m);
  }

  HeightNetwork network;   // in training mode
  double first = 0;
  double last = 0;
  for (int step = 0; step < 20; ++step) {
    network.clear_gradients();
    nn::Context context{.record = true};
    const nn::SparseTensor y = network.forward({sites, voxels.features}, context);
    Tensor gradient(y.features.shape(), DType::f32);
    last = loss(y.features.span<float>(), height, gradient.span<float>());
    if (step == 0) first = last;
    nn::backward(y.node, gradient);
    descend(network, 0.02f);
  }
  std::cout << voxels.size() << " voxels: mean squared error " << first << " m2 at first, " << last
            << " m2 after 20 steps\n";
  return last < first / 2 ? 0 : 1;
}
