// Activation layers.
#include <pumice/nn/activation.hpp>

#include <utility>

#include <pumice/ops/activation.hpp>

#include "nn/layer_timer.hpp"

namespace pumice::nn {

std::string_view name_of(Activation activation) {
  switch (activation) {
    case Activation::none: return "none";
    case Activation::relu: return "relu";
    case Activation::leaky_relu: return "leaky_relu";
    case Activation::silu: return "silu";
    case Activation::gelu: return "gelu";
    case Activation::sigmoid: return "sigmoid";
    case Activation::tanh: return "tanh";
  }
  return "?";
}

SparseTensor Activate::forward(SparseTensor x, Context& context) {
  close_tail(x);
  LayerTimer timer(context, path(), x, 0);
  Tensor y = activate(x.features, activation_, slope_);
  NodePtr node;
  if (context.record && x.node != nullptr) {
    node = std::make_shared<Node>(
        std::vector{x.node}, [features = x.features, from = x.node, activation = activation_,
                              slope = slope_](const Tensor& gradient) {
          from->accumulate(activation_gradient(features, gradient, activation, slope));
        });
  }
  SparseTensor result = x.with(std::move(y), std::move(node));
  result.has_open_tail = false;
  timer.finish(std::string(name_of(activation_)), result);
  return result;
}

}   // namespace pumice::nn
