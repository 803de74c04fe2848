// Running layers in a row; folded, a convolution takes the norm and activation behind it along.
#include <pumice/nn/sequential.hpp>

#include <string>
#include <utility>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/plan/choose.hpp>

namespace pumice::nn {
namespace {

template <class Layer> const Layer* layer_at(const std::vector<ModulePtr>& layers, std::size_t i) {
  return i < layers.size() ? dynamic_cast<const Layer*>(layers[i].get()) : nullptr;
}

/// What behind layer i fits into its epilogue; `next` is the first layer that does not.
Fused following(const std::vector<ModulePtr>& layers, std::size_t i, std::size_t& next) {
  Fused result;
  next = i + 1;
  if (const auto* norm = layer_at<BatchNorm>(layers, next); norm != nullptr && norm->folded()) {
    result.norm = norm;
    ++next;
  }
  if (const auto* activation = layer_at<Activate>(layers, next)) {
    result.activation = activation->activation();
    result.slope = activation->slope();
    ++next;
  }
  return result;
}

}   // namespace

Sequential::Sequential(std::vector<ModulePtr> layers) {
  for (ModulePtr& layer : layers)
    append(std::move(layer));
}

Sequential& Sequential::append(ModulePtr layer) {
  layers_.push_back(add_child(std::to_string(layers_.size()), std::move(layer)));
  return *this;
}

SparseTensor Sequential::forward(SparseTensor x, Context& context) {
  const bool fused = folded() && !context.record;
  for (std::size_t i = 0; i < layers_.size();) {
    auto* convolution = fused ? dynamic_cast<Convolution*>(layers_[i].get()) : nullptr;
    if (convolution == nullptr || !convolution->folded()) {
      x = layers_[i++]->forward(std::move(x), context);
    } else {
      const Fused behind = following(layers_, i, i);
      x = convolution->forward(std::move(x), behind, context);
    }
  }
  return x;
}

std::shared_ptr<Sequential> convolution_block(const ConvolutionSpec& spec,
                                              const NormOptions& norm) {
  return std::make_shared<Sequential>(std::vector<ModulePtr>{
      std::make_shared<Convolution>(spec),
      std::make_shared<BatchNorm>(spec.out_channels, norm.epsilon, norm.momentum), relu()});
}

ResidualBlock::ResidualBlock(std::int64_t in_channels, std::int64_t out_channels, int dimension,
                             const NormOptions& norm, std::int64_t right_channels)
    : right_channels_(right_channels),
      first_(std::make_shared<Convolution>(submanifold(in_channels, out_channels, 3, dimension))),
      first_norm_(std::make_shared<BatchNorm>(out_channels, norm.epsilon, norm.momentum)),
      second_(std::make_shared<Convolution>(submanifold(out_channels, out_channels, 3, dimension))),
      second_norm_(std::make_shared<BatchNorm>(out_channels, norm.epsilon, norm.momentum)) {
  net_ = add_child("net", std::make_shared<Sequential>(std::vector<ModulePtr>{
                              first_, first_norm_, relu(), second_, second_norm_}));
  relu_ = add_child("relu", relu());
  if (in_channels == out_channels) return;
  shortcut_ = std::make_shared<Convolution>(submanifold(in_channels, out_channels, 1, dimension));
  shortcut_norm_ = std::make_shared<BatchNorm>(out_channels, norm.epsilon, norm.momentum);
  downsample_ =
      add_child("downsample",
                std::make_shared<Sequential>(std::vector<ModulePtr>{shortcut_, shortcut_norm_}));
}

bool ResidualBlock::fuses(std::int64_t right_channels, DType type, Device device,
                          std::optional<Dataflow> dataflow) const {
  // A shortcut with a plan of its own runs by it.
  if (shortcut_ == nullptr || shortcut_->plans().forward != nullptr) return false;
  const std::int64_t in = first_->spec().in_channels, out = first_->spec().out_channels;
  const auto fits = [&](const ConvolutionProblem& inputs) {
    return can_fuse_inputs(inputs, target_of(device), dataflow.value_or(Dataflow::implicit_gemm));
  };
  return (right_channels == 0 ||
          fits({.in_channels = in, .dtype = type, .second_channels = right_channels})) &&
         fits({.in_channels = out,
               .dtype = type,
               .shortcut_channels = in,
               .shortcut_second_channels = right_channels});
}

SparseTensor ResidualBlock::forward(SparseTensor x, Context& context) {
  if (folded() && !context.record) return forward_folded(std::move(x), {}, context);
  SparseTensor y = net_->forward(x, context);
  if (downsample_ != nullptr) x = downsample_->forward(std::move(x), context);
  return relu_->forward(add(y, x, context), context);
}

SparseTensor ResidualBlock::forward(SparseTensor left, const SparseTensor& right,
                                    Context& context) {
  check_concatenable(left, right);
  const bool in_parts =
      folded() && !context.record &&
      fuses(right.channels(), left.dtype(), left.features.device(), context.dataflow);
  if (!in_parts) return forward(concatenate(left, right, context), context);
  return forward_folded(std::move(left), right.features, context);
}

SparseTensor ResidualBlock::forward_folded(SparseTensor x, const Tensor& right, Context& context) {
  SparseTensor y = first_->forward(
      x, {.second = right, .norm = first_norm_.get(), .activation = Activation::relu}, context);
  Fused last{.norm = second_norm_.get(), .activation = Activation::relu};
  const std::int64_t right_channels = right.defined() ? right.extent(1) : 0;
  if (fuses(right_channels, x.dtype(), x.features.device(), context.dataflow)) {
    last.shortcut = shortcut_.get();
    last.shortcut_norm = shortcut_norm_.get();
    last.shortcut_features = std::move(x.features);
    last.shortcut_second = right;
  } else {
    if (downsample_ != nullptr) x = downsample_->forward(std::move(x), context);
    last.residual = std::move(x.features);
  }
  return second_->forward(std::move(y), last, context);
}

}   // namespace pumice::nn
