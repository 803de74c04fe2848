// From a layer's settings to a kernel map and a call of the convolution operator.
#include <pumice/nn/convolution.hpp>

#include <string>
#include <utility>

#include <pumice/nn/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>

#include "maps/windows.hpp"
#include "nn/layer_timer.hpp"

namespace pumice::nn {
namespace {

std::string_view name_of(ConvolutionMode mode) {
  switch (mode) {
    case ConvolutionMode::submanifold: return "submanifold";
    case ConvolutionMode::strided: return "strided";
    case ConvolutionMode::transposed: return "transposed";
    case ConvolutionMode::inverse: return "inverse";
    case ConvolutionMode::generative: return "generative";
  }
  return "?";
}

void check(const ConvolutionSpec& spec) {
  validate(spec.window);
  PUMICE_EXPECTS(spec.in_channels > 0 && spec.out_channels > 0,
                 "convolution: in_channels = ", spec.in_channels,
                 ", out_channels = ", spec.out_channels, "; both must be at least 1");
  PUMICE_EXPECTS(spec.groups > 0 && spec.in_channels % spec.groups == 0 &&
                     spec.out_channels % spec.groups == 0,
                 "convolution: groups = ", spec.groups,
                 " must divide in_channels = ", spec.in_channels,
                 " and out_channels = ", spec.out_channels);
  if (spec.mode == ConvolutionMode::submanifold) {
    PUMICE_EXPECTS(!is_strided(spec.window), "convolution: a submanifold one has stride 1, not ",
                   to_string(spec.window), "; use mode strided");
  }
}

ConstTensorView view_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.view() : ConstTensorView{};
}

std::int64_t channels_of(const Tensor& tensor) {
  return tensor.defined() ? tensor.extent(1) : 0;
}

}   // namespace

ConvolutionSpec submanifold(std::int64_t in_channels, std::int64_t out_channels,
                            std::int32_t kernel, int dimension) {
  return {.in_channels = in_channels,
          .out_channels = out_channels,
          .window = submanifold_window(dimension, axes(dimension, kernel), axes(dimension, 1))};
}

Convolution::Convolution(const ConvolutionSpec& spec) : spec_(spec) {
  check(spec);
  spec_.window = normalized(spec.window);
  const std::int64_t volume = spec.window.volume();
  const std::int64_t group_channels = spec.in_channels / spec.groups;
  const std::int64_t fan_in = volume * group_channels;
  weight_ = add_parameter("weight",
                          {.shape = {volume, group_channels, spec.out_channels}, .fan_in = fan_in});
  if (spec.bias) {
    bias_ = add_parameter("bias",
                          {.shape = {spec.out_channels}, .compute_type = true, .fan_in = fan_in});
  }
}

std::string Convolution::kind() const {
  std::string text = std::string(name_of(spec_.mode)) + " " + describe(spec_.window);
  if (spec_.groups > 1) text += " groups " + std::to_string(spec_.groups);
  return text;
}

Convolution::Way Convolution::find_way(const SparseTensor& x, const CoordinateSetPtr& sites) const {
  MapCache& maps = *x.maps;
  passes_.begin(maps, x.coordinates, x.features.stream(),
                training() ? PassMemory::Followed::by_gradients : PassMemory::Followed::by_nothing);
  switch (spec_.mode) {
    case ConvolutionMode::submanifold: return {maps.submanifold(x.coordinates, spec_.window)};
    case ConvolutionMode::strided:
      return {maps.strided(x.coordinates, spec_.window, spec_.outputs)};
    case ConvolutionMode::generative: return {maps.generative(x.coordinates, spec_.window)};
    case ConvolutionMode::inverse: return way_back(x, sites);
    case ConvolutionMode::transposed: break;
  }
  PUMICE_EXPECTS(sites != nullptr, label(),
                 ": a transposed convolution needs the sites to go to; pass their coordinates, "
                 "or use mode generative to make every site it reaches");
  KernelMapPtr led_here = maps.strided_to(x.coordinates, spec_.window, sites);
  if (led_here != nullptr) return {std::move(led_here), true};
  return {maps.transposed(x.coordinates, sites, spec_.window)};
}

/// Back to where a strided convolution of this window came from.
Convolution::Way Convolution::way_back(const SparseTensor& x, const CoordinateSetPtr& sites) const {
  KernelMapPtr led_here = x.maps->strided_to(x.coordinates, spec_.window, sites);
  PUMICE_EXPECTS(led_here != nullptr, label(), ": no convolution of window ",
                 to_string(spec_.window),
                 " led to these sites in this forward pass, so there is none to invert; use mode "
                 "transposed for sites of another origin");
  return {std::move(led_here), true};
}

PackedWeights* Convolution::kept() {
  if (training() || packed_version_ != weight_->version()) packed_.clear();
  packed_version_ = weight_->version();
  return training() ? nullptr : &packed_;
}

ScaleShift Convolution::affine(const BatchNorm* norm) {
  const std::uint64_t version =
      (norm != nullptr ? norm->version() : 0) + (bias_ != nullptr ? bias_->version() : 0);
  if (norm == folded_norm_ && version == folded_version_) return folded_affine_;
  const Tensor bias = bias_ != nullptr ? std::as_const(*bias_).value() : Tensor();
  ScaleShift made = norm != nullptr ? norm->affine(bias.defined() ? bias.view() : ConstTensorView{})
                                    : ScaleShift{.scale = {}, .shift = bias};
  // What a graph works out is there when it has run, and not for calls before that.
  if (is_capturing(weight_->value().stream())) return made;
  folded_affine_ = std::move(made);
  folded_norm_ = norm;
  folded_version_ = version;
  packed_.clear();   // beside a shortcut they hold the scale
  ++folds_;
  return folded_affine_;
}

Tensor Convolution::joint_shift(const Fused& fused) {
  const Tensor own = affine(fused.norm).shift;
  const Tensor other = fused.shortcut->affine(fused.shortcut_norm).shift;
  if (!own.defined() || !other.defined()) return own.defined() ? own : other;
  const std::uint64_t version = folds_ + fused.shortcut->folds_;
  if (joint_shortcut_ == fused.shortcut && joint_version_ == version) return joint_shift_;
  Tensor made = add(own, other);
  if (is_capturing(made.stream())) return made;
  joint_shift_ = std::move(made);
  joint_shortcut_ = fused.shortcut;
  joint_version_ = version;
  return joint_shift_;
}

SparseTensor Convolution::forward(SparseTensor x, Context& context) {
  return run(std::move(x), nullptr, {}, context);
}

SparseTensor Convolution::forward(SparseTensor x, const CoordinateSetPtr& sites, Context& context) {
  const bool takes_sites =
      spec_.mode == ConvolutionMode::transposed || spec_.mode == ConvolutionMode::inverse;
  PUMICE_EXPECTS(sites != nullptr && takes_sites, label(), ": a ", kind(),
                 " convolution cannot be sent to given sites; modes transposed and inverse can");
  return run(std::move(x), sites, {}, context);
}

SparseTensor Convolution::forward(SparseTensor x, const Fused& fused, Context& context) {
  PUMICE_ENSURES(!context.record && !training(), "fused layers keep nothing for a backward pass");
  return run(std::move(x), nullptr, fused, context);
}

SparseTensor Convolution::run(SparseTensor x, const CoordinateSetPtr& sites, const Fused& fused,
                              Context& context) {
  const std::int64_t channels = x.channels() + channels_of(fused.second);
  PUMICE_EXPECTS(channels == spec_.in_channels, label(), ": features have ", channels,
                 " channels, the layer takes ", spec_.in_channels);
  PUMICE_EXPECTS(x.dtype() == weight_->value().dtype(), label(), ": features are ",
                 pumice::name_of(x.dtype()), ", weights ",
                 pumice::name_of(weight_->value().dtype()), "; convert one with to()");
  LayerTimer timer(context, path(), x, fused.shortcut != nullptr ? 2 : 1);
  const double map_ms_before = x.maps->build_ms();
  const Way way = find_way(x, sites);
  timer.map_is_ready(x.maps->build_ms() - map_ms_before);
  const KernelMapView view = way.view();

  const ScaleShift affine = this->affine(fused.norm);
  Epilogue epilogue{.scale = view_of(affine.scale),
                    .shift = view_of(affine.shift),
                    .residual = view_of(fused.residual),
                    .activation = fused.activation,
                    .slope = fused.slope};
  Shortcut shortcut;
  Tensor shift;   // of both, as long as it is enqueued
  ScaleShift shortcut_affine;
  if (fused.shortcut != nullptr) {
    shift = joint_shift(fused);
    shortcut_affine = fused.shortcut->affine(fused.shortcut_norm);
    epilogue.shift = view_of(shift);
    shortcut = {.features = fused.shortcut_features,
                .second = view_of(fused.shortcut_second),
                .weight = fused.shortcut->weight_->value(),
                .scale = view_of(shortcut_affine.scale),
                .kept = fused.shortcut->kept()};
  }
  ConvolutionOptions options{.groups = spec_.groups,
                             .epilogue = epilogue,
                             .second = view_of(fused.second),
                             .shortcut = shortcut,
                             .plan = plans_.forward.get(),
                             .shared = context.shared_plans,
                             .dataflow = context.dataflow,
                             .kept = kept(),
                             .numerics = context.numerics};
  const ConvolutionProblem problem =
      convolution_problem(x.features, weight_->value(), view, options);
  const PlanPtr plan = plan_of(problem, view, options);
  options.plan = plan.get();
  options.dataflow.reset();
  Tensor y = convolution(x.features, weight_->value(), view, options);

  NodePtr node;
  if (context.record) {
    const ConvolutionOptions backwards{
        .groups = spec_.groups, .dataflow = context.dataflow, .numerics = context.numerics};
    node = std::make_shared<Node>(std::vector{x.node}, [way, backwards, plans = plans_,
                                                        features = x.features, from = x.node,
                                                        weight = weight_,
                                                        bias = bias_](const Tensor& gradient) {
      const KernelMapView pairs = way.view();
      ConvolutionOptions of_weight = backwards;
      of_weight.dataflow.reset();   // which is one of its own
      of_weight.plan = plans.weight_gradient.get();
      weight->accumulate(convolution_weight_gradient(features, gradient, pairs, of_weight));
      if (bias != nullptr) bias->accumulate(bias_gradient(gradient, out_row_count(pairs)));
      if (from != nullptr) {
        ConvolutionOptions of_input = backwards;
        of_input.plan = plans.input_gradient.get();
        from->accumulate(convolution_input_gradient(gradient, weight->value(), pairs, of_input));
      }
    });
  }
  SparseTensor result = x.with(way.out(), std::move(y), std::move(node));
  if (timer.on()) {
    LayerRecord& record = timer.record();
    record.in_channels = spec_.in_channels;
    record.pairs = view.pairs();
    record.gflop = 1e-9 * problem.flop();
    record.plan = plan->name();
    std::string what = kind();
    if (fused.norm != nullptr) what += " + norm";
    if (fused.residual.defined()) what += " + residual";
    if (fused.shortcut != nullptr) what += " + shortcut";
    if (fused.activation != Activation::none) {
      what += " + ";
      what += nn::name_of(fused.activation);
    }
    timer.finish(std::move(what), result);
  }
  return result;
}

}   // namespace pumice::nn
