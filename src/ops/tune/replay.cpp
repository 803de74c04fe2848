// Operands of the shapes of a problem, and the operator of its direction.
#include "ops/tune/replay.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/ops/linear.hpp>

namespace pumice {
namespace {

/// Numbers in [-1, 1) that do not repeat: multiplying zeros takes less power, and less time.
Tensor random_rows(Shape shape, DType dtype, StreamView stream, std::uint64_t seed) {
  Tensor numbers(shape, DType::f32);
  std::uint64_t state = seed * 2 + 1;
  for (float& number : numbers.span<float>()) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    number = static_cast<float>(static_cast<std::int32_t>(state >> 32)) * 0x1p-31f;
  }
  return copy_to(stream, numbers.to(dtype));
}

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView{};
}

DType sum_type(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// An activation that needs what the problem's epilogue knows.
Activation activation_of(ActivationSet activations) {
  return activations == ActivationSet::sloped ? Activation::relu : Activation::sigmoid;
}

}   // namespace

Tensor ReplayTensors::get(std::int64_t rows, std::int64_t channels, DType dtype, int role) {
  if (channels == 0) return {};
  Tensor& made = made_[{rows, channels, dtype, role}];
  if (!made.defined()) made = random_rows({rows, channels}, dtype, stream_, made_.size());
  return made;
}

ReplayedCall::ReplayedCall(const OperatorCall& call, ReplayTensors& tensors, bool keeps_weights)
    : call_(call), keeps_weights_(keeps_weights) {
  const ConvolutionProblem& p = call_.problem;
  const StreamView stream = tensors.stream();
  std::int64_t in_rows = p.in_rows, out_rows = p.out_rows;
  if (call_.map != nullptr) {   // of which a problem may have the likely rows, and not the room
    KernelMapView view = call_.map->view();
    if (call_.is_transposed) view = transposed(view);
    in_rows = view.in_rows, out_rows = view.out_rows;
  }
  const auto weight = [&](std::int64_t offsets, std::int64_t in, std::int64_t out) {
    return random_rows({offsets, in, out}, p.dtype, stream, 7);
  };
  switch (p.direction) {
    case Direction::forward:
      input_ = tensors.get(in_rows, p.in_channels - p.second_channels, p.dtype, 0);
      second_ = tensors.get(in_rows, p.second_channels, p.dtype, 1);
      shortcut_ =
          tensors.get(out_rows, p.shortcut_channels - p.shortcut_second_channels, p.dtype, 2);
      shortcut_second_ = tensors.get(out_rows, p.shortcut_second_channels, p.dtype, 3);
      weight_ = weight(p.offsets, p.in_channels / p.groups, p.out_channels);
      if (p.shortcut_channels > 0)
        shortcut_weight_ = weight(1, p.shortcut_channels, p.out_channels);
      scale_ = random_rows({p.out_channels}, sum_type(p.dtype), stream, 8);
      shift_ = random_rows({p.out_channels}, sum_type(p.dtype), stream, 9);
      return;
    case Direction::input_gradient:
      grad_output_ = tensors.get(in_rows, p.in_channels, p.dtype, 0);
      weight_ = weight(p.offsets, p.out_channels / p.groups, p.in_channels);
      return;
    case Direction::weight_gradient:
      input_ = tensors.get(in_rows, p.in_channels, p.dtype, 0);
      grad_output_ = tensors.get(out_rows, p.out_channels, p.dtype, 1);
      return;
  }
}

void ReplayedCall::run(const ConvolutionPlan& plan, const KernelMap* map) {
  PUMICE_ENSURES((map == nullptr) == (call_.map == nullptr), "the map of another call");
  if (map == nullptr) return run_linear(plan);
  const ConvolutionProblem& p = call_.problem;
  ConvolutionOptions options{.groups = p.groups,
                             .plan = &plan,
                             .kept = keeps_weights_ ? &packed_ : nullptr,
                             .numerics = p.numerics};
  KernelMapView view = map->view();
  if (call_.is_transposed) view = transposed(view);
  switch (p.direction) {
    case Direction::forward: return run_forward(std::move(options), view);
    // The problem of an input gradient is that of the transpose, and the operator takes the map.
    case Direction::input_gradient: return run_input_gradient(std::move(options), transposed(view));
    case Direction::weight_gradient: return run_weight_gradient(std::move(options), view);
  }
}

void ReplayedCall::run_linear(const ConvolutionPlan& plan) {
  const ConvolutionProblem& p = call_.problem;
  const LinearOptions options{
      .kept = keeps_weights_ ? &packed_ : nullptr, .numerics = p.numerics, .plan = &plan};
  const auto matrix = [&] {   // of one offset
    return ConstTensorView(weight_.raw(), weight_.dtype(), {weight_.extent(1), weight_.extent(2)},
                           weight_.stream());
  };
  switch (p.direction) {
    case Direction::forward: (void)linear(input_, matrix(), shift_, options); return;
    case Direction::input_gradient:
      (void)linear_input_gradient(grad_output_, matrix(), options);
      return;
    case Direction::weight_gradient:
      (void)linear_weight_gradient(input_, grad_output_, options);
      return;
  }
}

void ReplayedCall::run_forward(ConvolutionOptions options, const KernelMapView& view) {
  const ConvolutionProblem& p = call_.problem;
  options.epilogue = {.scale = view_of(scale_),
                      .shift = view_of(shift_),
                      .activation = activation_of(p.activations)};
  options.second = view_of(second_);
  if (shortcut_.defined()) {
    options.shortcut = {.features = view_of(shortcut_),
                        .second = view_of(shortcut_second_),
                        .weight = view_of(shortcut_weight_),
                        .scale = view_of(scale_),
                        .kept = keeps_weights_ ? &shortcut_packed_ : nullptr};
  }
  (void)convolution(input_, weight_, view, options);
}

void ReplayedCall::run_input_gradient(ConvolutionOptions options, const KernelMapView& view) {
  (void)convolution_input_gradient(grad_output_, weight_, view, options);
}

void ReplayedCall::run_weight_gradient(ConvolutionOptions options, const KernelMapView& view) {
  options.kept = nullptr;
  options.wide_weight_gradient = true;
  (void)convolution_weight_gradient(input_, grad_output_, view, options);
}

KernelMapPtr uncut(const KernelMapPtr& map) {
  if (map->device().kind == DeviceKind::cpu) return map;
  return KernelMap::on_device(map->window(), map->in(), map->out(), map->outputs_are_finer(),
                              map->view().has_identity_offset);
}

}   // namespace pumice
