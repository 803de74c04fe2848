// Dense layers, with weights [out, in] as PyTorch stores them.
#include <pumice/nn/linear.hpp>

#include <utility>

#include <pumice/ops/linear.hpp>

#include "nn/layer_timer.hpp"

namespace pumice::nn {

Linear::Linear(std::int64_t in_channels, std::int64_t out_channels, bool bias) {
  PUMICE_EXPECTS(in_channels > 0 && out_channels > 0, "linear: in_channels = ", in_channels,
                 ", out_channels = ", out_channels, "; both must be at least 1");
  weight_ = add_parameter("weight", {.shape = {out_channels, in_channels}, .fan_in = in_channels});
  if (bias) {
    bias_ = add_parameter("bias",
                          {.shape = {out_channels}, .compute_type = true, .fan_in = in_channels});
  }
}

SparseTensor Linear::forward(SparseTensor x, Context& context) {
  const Tensor& stored = weight_->value();
  PUMICE_EXPECTS(x.channels() == stored.extent(1), label(), ": features have ", x.channels(),
                 " channels, the layer takes ", stored.extent(1));
  PUMICE_EXPECTS(x.dtype() == stored.dtype(), label(), ": features are ", name_of(x.dtype()),
                 ", weights ", name_of(stored.dtype()), "; convert one with to()");
  LayerTimer timer(context, path(), x, 1);
  if (training() || packed_version_ != weight_->version()) packed_.clear();
  packed_version_ = weight_->version();
  Tensor y = linear_transposed(
      x.features, stored,
      bias_ != nullptr ? std::as_const(*bias_).value().view() : ConstTensorView{},
      {.kept = &packed_, .numerics = context.numerics, .rows = &x.coordinates->rows()});
  NodePtr node;
  if (context.record) {
    node = std::make_shared<Node>(
        std::vector{x.node},
        [features = x.features, sites = x.coordinates, from = x.node, parameter = weight_,
         bias = bias_, numerics = context.numerics](const Tensor& gradient) {
          const LinearOptions options{.numerics = numerics, .rows = &sites->rows()};
          // The stored weight is the transpose of the operator's, and so is its gradient.
          parameter->accumulate(linear_weight_gradient(gradient, features, options));
          if (bias != nullptr) bias->accumulate(linear_bias_gradient(gradient, options.rows));
          if (from != nullptr) {
            from->accumulate(
                linear_transposed_input_gradient(gradient, parameter->value(), options));
          }
        });
  }
  timer.record().gflop = 2e-9 * static_cast<double>(x.rows()) * static_cast<double>(x.channels()) *
                         static_cast<double>(stored.extent(0));
  SparseTensor result = x.with(std::move(y), std::move(node));
  timer.finish("linear", result);
  return result;
}

}   // namespace pumice::nn
