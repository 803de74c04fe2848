// Norms: training statistics, running statistics, and both as gradients.
#include <pumice/nn/normalization.hpp>

#include <utility>

#include <pumice/ops/normalization.hpp>

#include "nn/layer_timer.hpp"

namespace pumice::nn {
namespace {

void check_channels(const std::string& label, const SparseTensor& x, const ParameterPtr& weight) {
  PUMICE_EXPECTS(x.channels() == weight->value().elements(), label, ": features have ",
                 x.channels(), " channels, the norm has ", weight->value().elements());
  PUMICE_EXPECTS(compute_dtype(x.dtype()) == weight->value().dtype(), label, ": features are ",
                 name_of(x.dtype()), ", the norm's parameters ", name_of(weight->value().dtype()),
                 "; convert one with to()");
}

void pass_on(const NormGradients& gradients, const NodePtr& from, const ParameterPtr& weight,
             const ParameterPtr& bias) {
  weight->accumulate(gradients.weight);
  bias->accumulate(gradients.bias);
  if (from != nullptr) from->accumulate(gradients.features);
}

}   // namespace

BatchNorm::BatchNorm(std::int64_t channels, double epsilon, double momentum)
    : epsilon_(epsilon),
      momentum_(momentum),
      weight_(add_parameter("weight", {.shape = {channels}, .compute_type = true, .initial = 1})),
      bias_(add_parameter("bias", {.shape = {channels}, .compute_type = true})),
      running_mean_(add_parameter("running_mean",
                                  {.shape = {channels}, .trainable = false, .compute_type = true})),
      running_var_(add_parameter(
          "running_var",
          {.shape = {channels}, .trainable = false, .compute_type = true, .initial = 1})) {}

SparseTensor BatchNorm::forward(SparseTensor x, Context& context) {
  check_channels(label(), x, weight_);
  LayerTimer timer(context, path(), x, 0);
  Tensor y;
  Backward backward;
  if (training()) {
    Normalized normal = batch_norm_training(
        x.features, weight_->value(), bias_->value(), running_mean_->edit().view(),
        running_var_->edit().view(),
        {.epsilon = epsilon_, .momentum = momentum_, .rows = &x.coordinates->rows()});
    y = std::move(normal.output);
    if (context.record) {
      backward = [features = x.features, sites = x.coordinates, from = x.node, weight = weight_,
                  bias = bias_, mean = normal.mean,
                  deviation = normal.inverse_deviation](const Tensor& gradient) {
        pass_on(batch_norm_training_gradient(features, gradient, weight->value(), mean, deviation,
                                             {.rows = &sites->rows()}),
                from, weight, bias);
      };
    }
  } else {
    y = batch_norm_inference(x.features, running_mean_->value(), running_var_->value(),
                             weight_->value(), bias_->value(), epsilon_, &x.coordinates->rows());
    if (context.record) {
      backward = [features = x.features, sites = x.coordinates, from = x.node, weight = weight_,
                  bias = bias_, mean = running_mean_->value(), variance = running_var_->value(),
                  epsilon = epsilon_](const Tensor& gradient) {
        pass_on(batch_norm_inference_gradient(features, gradient, mean, variance, weight->value(),
                                              epsilon, &sites->rows()),
                from, weight, bias);
      };
    }
  }
  NodePtr node =
      backward ? std::make_shared<Node>(std::vector{x.node}, std::move(backward)) : nullptr;
  SparseTensor result = x.with(std::move(y), std::move(node));
  timer.finish("batch norm", result);
  return result;
}

ScaleShift BatchNorm::affine(const ConstTensorView& added_before) const {
  const auto values = [](const ParameterPtr& parameter) {
    return std::as_const(*parameter).value().view();
  };
  return fold_batch_norm(values(running_mean_), values(running_var_), values(weight_),
                         values(bias_), added_before, epsilon_);
}

std::uint64_t BatchNorm::version() const {
  return weight_->version() + bias_->version() + running_mean_->version() + running_var_->version();
}

LayerNorm::LayerNorm(std::int64_t channels, double epsilon)
    : epsilon_(epsilon),
      weight_(add_parameter("weight", {.shape = {channels}, .compute_type = true, .initial = 1})),
      bias_(add_parameter("bias", {.shape = {channels}, .compute_type = true})) {}

SparseTensor LayerNorm::forward(SparseTensor x, Context& context) {
  check_channels(label(), x, weight_);
  LayerTimer timer(context, path(), x, 0);
  Normalized normal =
      layer_norm(x.features, weight_->value(), bias_->value(), epsilon_, &x.coordinates->rows());
  NodePtr node;
  if (context.record) {
    node = std::make_shared<Node>(std::vector{x.node},
                                  [features = x.features, sites = x.coordinates, from = x.node,
                                   weight = weight_, bias = bias_, mean = normal.mean,
                                   deviation = normal.inverse_deviation](const Tensor& gradient) {
                                    pass_on(layer_norm_gradient(features, gradient, weight->value(),
                                                                mean, deviation, &sites->rows()),
                                            from, weight, bias);
                                  });
  }
  SparseTensor result = x.with(std::move(normal.output), std::move(node));
  timer.finish("layer norm", result);
  return result;
}

InstanceNorm::InstanceNorm(std::int64_t channels, double epsilon)
    : epsilon_(epsilon),
      weight_(add_parameter("weight", {.shape = {channels}, .compute_type = true, .initial = 1})),
      bias_(add_parameter("bias", {.shape = {channels}, .compute_type = true})) {}

SparseTensor InstanceNorm::forward(SparseTensor x, Context& context) {
  check_channels(label(), x, weight_);
  LayerTimer timer(context, path(), x, 0);
  Normalized normal =
      instance_norm(x.features, *x.coordinates, weight_->value(), bias_->value(), epsilon_);
  NodePtr node;
  if (context.record) {
    node = std::make_shared<Node>(
        std::vector{x.node}, [features = x.features, sites = x.coordinates, from = x.node,
                              weight = weight_, bias = bias_, mean = normal.mean,
                              deviation = normal.inverse_deviation](const Tensor& gradient) {
          pass_on(
              instance_norm_gradient(features, gradient, *sites, weight->value(), mean, deviation),
              from, weight, bias);
        });
  }
  SparseTensor result = x.with(std::move(normal.output), std::move(node));
  timer.finish("instance norm", result);
  return result;
}

}   // namespace pumice::nn
