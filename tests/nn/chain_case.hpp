// Chains for tests, and what their operators give one by one in float64 on the CPU.
#pragma once

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pumice/core/copy.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/nn/chain.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/normalization.hpp>

#include "nn/scenes.hpp"

namespace pumice::nn::test {

/// Which map a link's convolution has.
enum class Over { cube, point, halves, back };   // 3×3×3, 1×1×1, stride 2, from there back
/// How a weight lies in memory.
enum class Lies { plain, shaped, out_first };   // [K, in, out], [3, 3, 3, in, out], [out, K, in]

struct CaseLink {
  std::size_t input;
  std::optional<std::size_t> residual;
  bool relu;
  Over over;
  std::int64_t channels;
  Lies lies = Lies::plain;
  std::optional<std::size_t> second = {};
};

struct ChainCase {
  std::string name;
  std::vector<CaseLink> links;
  std::int64_t other_channels = 0;   // 0: nothing else is given
};

inline std::vector<ChainCase> chain_cases() {
  return {
      {"one link", {{0, {}, true, Over::cube, 8}}},
      {"one link without ReLU", {{0, {}, false, Over::point, 4}}},
      {"a block that adds what it was given",
       {{0, {}, true, Over::cube, 8}, {2, 0, true, Over::cube, 4}}},
      {"a block with a shortcut",
       {{0, {}, false, Over::point, 8}, {0, {}, true, Over::cube, 8}, {3, 2, true, Over::cube, 8}}},
      {"another tensor is added", {{0, {}, true, Over::cube, 8}, {2, 1, true, Over::cube, 4}}, 4},
      {"another tensor goes in", {{1, {}, true, Over::cube, 4}, {2, 0, false, Over::cube, 4}}, 8},
      {"one value is taken by several",
       {{0, {}, true, Over::cube, 8},
        {2, 2, true, Over::cube, 8},
        {2, {}, false, Over::point, 8},
        {3, 4, false, Over::cube, 8},
        {5, 2, true, Over::cube, 8}}},
      {"down and back",
       {{0, {}, true, Over::halves, 8},
        {2, {}, true, Over::cube, 8},
        {3, 2, true, Over::cube, 8},
        {4, 0, true, Over::back, 4}}},
      {"odd channels, other layouts",
       {{0, {}, true, Over::cube, 3, Lies::out_first},
        {2, {}, true, Over::cube, 5, Lies::shaped},
        {3, {}, true, Over::cube, 8, Lies::out_first},
        {4, {}, false, Over::cube, 8, Lies::shaped},
        {5, 4, true, Over::cube, 8}}},
  };
}

/// Whose links take two values side by side. Of 4 + 4 channels, 16 bytes of a row are whole in f32
/// alone; of 8 + 8 in f16 too.
inline std::vector<ChainCase> joined_cases() {
  const auto plain = Lies::plain;
  return {
      {"another tensor beside", {{0, {}, true, Over::cube, 8, plain, 1}}, 4},
      {"a tensor beside itself", {{0, {}, false, Over::cube, 4, plain, 0}}},
      {"a block of two tensors with a shortcut",
       {{0, {}, false, Over::point, 8, plain, 1},
        {0, {}, true, Over::cube, 8, plain, 1},
        {3, 2, true, Over::cube, 8}},
       4},
      {"a block of two values that were made, with a shortcut",
       {{0, {}, true, Over::cube, 8},
        {2, {}, true, Over::cube, 8},
        {2, {}, false, Over::point, 16, plain, 3},
        {2, {}, true, Over::cube, 16, plain, 3},
        {5, 4, true, Over::cube, 16}}},
      {"up onto a tensor, odd channels, other layouts",
       {{0, {}, true, Over::halves, 8},
        {2, {}, true, Over::back, 5},
        {3, {}, true, Over::cube, 8, Lies::out_first, 1},
        {1, {}, false, Over::cube, 8, Lies::shaped, 3},
        {4, 5, false, Over::cube, 8}},
       3},
      {"values of several uses",
       {{0, {}, true, Over::cube, 4},
        {2, 0, true, Over::cube, 4, plain, 0},
        {0, 1, false, Over::point, 4, plain, 2},
        {3, 4, true, Over::cube, 4, plain, 1},
        {0, 5, true, Over::cube, 4, plain, 2}},
       4},
  };
}

inline std::vector<ChainCase> all_cases() {
  std::vector<ChainCase> all = chain_cases();
  for (ChainCase& one : joined_cases())
    all.push_back(std::move(one));
  return all;
}

/// What a link learns and keeps, in float64 on the host, its weight [K, in, out].
struct CaseParameters {
  Tensor weight, scale, shift, mean, variance, batches;
};

struct Gradients {
  Tensor features, other;
  std::vector<Tensor> parameters;
};

/// A case on sites of its own.
struct ChainProblem {
  static constexpr std::int64_t kChannels = 4;

  ChainProblem(ChainCase of, std::int64_t rows) : chain_case(std::move(of)) {
    features = random_tensor({rows, kChannels}, DType::f64, 1);
    std::vector<std::int64_t> channels{kChannels, chain_case.other_channels};   // of each value
    if (chain_case.other_channels > 0)
      other = random_tensor({rows, chain_case.other_channels}, DType::f64, 2);
    for (const CaseLink& link : chain_case.links) {
      const std::int64_t offsets = link.over == Over::cube ? 27 : link.over == Over::point ? 1 : 8;
      const Shape one_a_channel{link.channels};
      const std::uint64_t seed = 10 * channels.size();
      const std::int64_t taken =
          channels.at(link.input) + (link.second ? channels.at(*link.second) : 0);
      parameters.push_back({random_tensor({offsets, taken, link.channels}, DType::f64, seed),
                            random_tensor(one_a_channel, DType::f64, seed + 1),
                            random_tensor(one_a_channel, DType::f64, seed + 2),
                            random_tensor(one_a_channel, DType::f64, seed + 3),
                            Tensor::full(one_a_channel, DType::f64, 1.5),
                            Tensor::zeros({1}, DType::i64)});
      channels.push_back(link.channels);
    }
    find_maps(rows == 0 ? empty_scene() : make_scene({.sites = rows}));
    grad_output = random_tensor({views.back().out_rows, channels.back()}, DType::f64, 3);
  }

  void find_maps(const CoordinateSetPtr& fine) {
    const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
    const KernelWindow point = submanifold_window(3, axes(3, 1), axes(3, 1));
    const KernelWindow halves{.size = axes(3, 2), .stride = axes(3, 2)};
    KernelMapPtr down;
    std::vector<CoordinateSetPtr> on{fine, fine};   // of each value
    for (const CaseLink& link : chain_case.links) {
      const CoordinateSetPtr here = on.at(link.input);
      if (link.over == Over::halves) down = strided_map(here, halves, StridedOutputs::cell);
      const bool changes = link.over == Over::halves || link.over == Over::back;
      maps.push_back(changes ? down
                             : submanifold_map(here, link.over == Over::cube ? cube : point));
      const bool goes_back = link.over == Over::back;
      views.push_back(goes_back ? transposed(down->view()) : maps.back()->view());
      on.push_back(goes_back ? down->in() : maps.back()->out());
    }
  }

  Chain chain() const {
    std::vector<ChainLink> links;
    for (const CaseLink& link : chain_case.links)
      links.push_back({.input = link.input,
                       .second = link.second,
                       .residual = link.residual,
                       .relu = link.relu,
                       .momentum = 0.25});
    return Chain(std::move(links));
  }

  ChainCase chain_case;
  std::vector<KernelMapPtr> maps;
  std::vector<KernelMapView> views;
  Tensor features, other, grad_output;
  std::vector<CaseParameters> parameters;
};

/// What a chain does, operator by operator.
class OneByOne {
 public:
  explicit OneByOne(const ChainProblem& problem)
      : problem_(problem), values_{problem.features, problem.other} {}

  Tensor train() {
    for (std::size_t i = 0; i < problem_.chain_case.links.size(); ++i) {
      const CaseLink& link = problem_.chain_case.links[i];
      const CaseParameters& learned = problem_.parameters[i];
      Step& step = steps_.emplace_back();
      step.mean = learned.mean.clone();
      step.variance = learned.variance.clone();
      step.x = side_by_side(link, values_);
      step.convolved = convolution(step.x, learned.weight, problem_.views[i]);
      step.normalized =
          batch_norm_training(step.convolved, learned.scale, learned.shift, step.mean.view(),
                              step.variance.view(), {.momentum = 0.25});
      step.sum = link.residual ? add(step.normalized.output, values_[*link.residual])
                               : step.normalized.output;
      values_.push_back(link.relu ? activate(step.sum, Activation::relu) : step.sum);
    }
    return values_.back();
  }

  Gradients gradients() {
    std::vector<Tensor> found(values_.size());
    const auto reach = [&](std::size_t value, const Tensor& gradient) {
      found[value] = found[value].defined() ? add(found[value], gradient) : gradient;
    };
    found.back() = problem_.grad_output;
    Gradients result;
    result.parameters.resize(3 * steps_.size());
    for (std::size_t i = steps_.size(); i-- > 0;) {
      const CaseLink& link = problem_.chain_case.links[i];
      const CaseParameters& learned = problem_.parameters[i];
      const Step& step = steps_[i];
      Tensor gradient = found[2 + i];
      if (link.relu) gradient = activation_gradient(step.sum, gradient, Activation::relu);
      if (link.residual) reach(*link.residual, gradient);
      NormGradients of_norm =
          batch_norm_training_gradient(step.convolved, gradient, learned.scale,
                                       step.normalized.mean, step.normalized.inverse_deviation);
      const Tensor of_x =
          convolution_input_gradient(of_norm.features, learned.weight, problem_.views[i]);
      if (link.second) {
        const std::vector<Tensor> parts =
            split(of_x, std::array{values_[link.input].extent(1), values_[*link.second].extent(1)});
        reach(link.input, parts[0]);
        reach(*link.second, parts[1]);
      } else {
        reach(link.input, of_x);
      }
      result.parameters[3 * i] =
          convolution_weight_gradient(step.x, of_norm.features, problem_.views[i]);
      result.parameters[3 * i + 1] = of_norm.weight;
      result.parameters[3 * i + 2] = of_norm.bias;
    }
    result.features = found[0];
    result.other = found[1];
    return result;
  }
  const Tensor& running_mean(std::size_t link) const { return steps_[link].mean; }
  const Tensor& running_variance(std::size_t link) const { return steps_[link].variance; }

  Tensor infer() const {
    std::vector<Tensor> values{problem_.features, problem_.other};
    for (std::size_t i = 0; i < problem_.chain_case.links.size(); ++i) {
      const CaseLink& link = problem_.chain_case.links[i];
      const CaseParameters& learned = problem_.parameters[i];
      Tensor y = batch_norm_inference(
          convolution(side_by_side(link, values), learned.weight, problem_.views[i]), learned.mean,
          learned.variance, learned.scale, learned.shift);
      if (link.residual) y = add(y, values[*link.residual]);
      values.push_back(link.relu ? activate(y, Activation::relu) : y);
    }
    return values.back();
  }

 private:
  static Tensor side_by_side(const CaseLink& link, const std::vector<Tensor>& values) {
    return link.second ? concatenate(values[link.input], values[*link.second]) : values[link.input];
  }

  struct Step {
    Tensor x, convolved, sum, mean, variance;
    Normalized normalized;
  };
  const ChainProblem& problem_;
  std::vector<Tensor> values_;
  std::vector<Step> steps_;
};

/// The axes of a weight [K, in, out] as it is to lie.
inline AxisOrder axes_of(Lies lies) {
  return lies == Lies::out_first ? AxisOrder{2, 0, 1} : AxisOrder{0, 1, 2};
}

/// A weight, or its gradient, in its layout.
inline Tensor laid(const Tensor& weight, Lies lies) {
  const Shape& s = weight.shape();
  if (lies == Lies::plain) return weight;
  if (lies == Lies::shaped) return weight.reshaped({3, 3, 3, s[1], s[2]});
  Tensor result({s[2], s[0], s[1]}, weight.dtype());
  const Permutation copy{weight.view(), axes_of(lies), result.view()};
  permute({&copy, 1});
  return result;
}

inline std::optional<WeightLayout> layout_of(const Tensor& weight, Lies lies) {
  const Shape shape = laid(weight, lies).shape();
  const std::vector<int> as_it_is{0, 1, 2, 3, 4};
  const std::vector<int> out_last{1, 2, 0};
  if (lies == Lies::plain) return std::nullopt;
  return WeightLayout(shape.extents(), lies == Lies::shaped ? as_it_is : out_last);
}

struct CaseTypes {
  DType features = DType::f64;
  DType weights = DType::f64;
  DType norms = DType::f64;
};

/// A problem's tensors where a chain runs: in some types, on some stream.
class OnStream {
 public:
  OnStream(const ChainProblem& problem, const CaseTypes& types, StreamView stream)
      : types_(types), stream_(stream) {
    features = there(problem.features, types.features);
    other = there(problem.other, types.features);
    grad_output = there(problem.grad_output, types.features);
    place_maps(problem);
    for (std::size_t i = 0; i < problem.parameters.size(); ++i) {
      const CaseParameters& one = problem.parameters[i];
      const Lies lies = problem.chain_case.links[i].lies;
      layouts_.push_back(layout_of(one.weight, lies));
      owned.push_back({there(laid(one.weight, lies), types.weights), there(one.scale, types.norms),
                       there(one.shift, types.norms), there(one.mean, types.norms),
                       there(one.variance, types.norms), copy_to(stream, one.batches.clone())});
    }
  }

  std::vector<LinkParameters> parameters() const {
    std::vector<LinkParameters> all;
    for (std::size_t i = 0; i < owned.size(); ++i)
      all.push_back({.weight = owned[i].weight,
                     .scale = owned[i].scale,
                     .shift = owned[i].shift,
                     .layout = layouts_[i] ? &*layouts_[i] : nullptr});
    return all;
  }
  std::vector<RunningStatistics> running() {
    std::vector<RunningStatistics> all;
    for (CaseParameters& one : owned)
      all.push_back({one.mean.view(), one.variance.view(), one.batches.view()});
    return all;
  }
  ChainInput input() const {
    return {.features = features,
            .other = other.defined() ? other.view() : ConstTensorView{},
            .maps = views};
  }

  Tensor features, other, grad_output;
  std::vector<CaseParameters> owned;
  std::vector<KernelMapView> views;

 private:
  Tensor there(const Tensor& tensor, DType type) const {
    if (!tensor.defined()) return {};
    const Tensor typed = tensor.to(type);
    return stream_.device.kind == DeviceKind::cpu ? typed.clone() : copy_to(stream_, typed);
  }

  void place_maps(const ChainProblem& problem) {
    if (stream_.device.kind == DeviceKind::cpu) {
      views = problem.views;
      return;
    }
    std::map<const CoordinateSet*, CoordinateSetPtr> sets;
    std::map<const KernelMap*, KernelMapPtr> made;
    const auto there_is = [&](const CoordinateSetPtr& set) {
      CoordinateSetPtr& copy = sets[set.get()];
      if (copy == nullptr) copy = CoordinateSet::copy_to(set, stream_);
      return copy;
    };
    for (std::size_t i = 0; i < problem.maps.size(); ++i) {
      const KernelMapPtr& map = problem.maps[i];
      KernelMapPtr& copy = made[map.get()];
      if (copy == nullptr && map->in() == map->out())
        copy = submanifold_map(there_is(map->in()), map->window());
      else if (copy == nullptr)
        copy = map_between(there_is(map->in()), there_is(map->out()), map->window());
      maps_.push_back(copy);
      const bool goes_back = problem.chain_case.links[i].over == Over::back;
      views.push_back(goes_back ? transposed(copy->view()) : copy->view());
    }
  }

  CaseTypes types_;
  StreamView stream_;
  std::vector<KernelMapPtr> maps_;
  std::vector<std::optional<WeightLayout>> layouts_;
};

inline Tensor on_host(const Tensor& tensor) {
  return tensor.device().kind == DeviceKind::cuda ? copy_to_host(tensor, tensor.stream()) : tensor;
}

/// ‖actual − expected‖ / ‖expected‖, in double.
inline double norm_difference(const Tensor& actual, const Tensor& expected) {
  if (actual.shape() != expected.shape()) return INFINITY;
  const Tensor left = actual.to(DType::f64);
  const Tensor right = expected.to(DType::f64);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < left.span<double>().size(); ++i) {
    difference += std::pow(left.span<double>()[i] - right.span<double>()[i], 2);
    norm += std::pow(right.span<double>()[i], 2);
  }
  return difference == 0 ? 0 : std::sqrt(difference / std::max(norm, 1e-300));
}

/// How far a result may be from what float64 gives.
struct Tolerance {
  double largest = 0;   // of each element, in parts of the largest one; 0: not looked at
  double norm = 0;      // of all together; 0: not looked at
};

inline void expect_close(const Tensor& actual, const Tensor& expected, const Tolerance& tolerance,
                         const std::string& what) {
  ASSERT_TRUE(actual.defined()) << what;
  const Tensor found = on_host(actual);
  if (tolerance.largest > 0) {
    EXPECT_LE(relative_difference(found, expected), tolerance.largest) << what;
  }
  if (tolerance.norm > 0) {
    EXPECT_LE(norm_difference(found, expected), tolerance.norm) << what;
  }
}
inline void expect_close(const Tensor& actual, const Tensor& expected, double largest,
                         const std::string& what) {
  expect_close(actual, expected, Tolerance{.largest = largest}, what);
}

}   // namespace pumice::nn::test
