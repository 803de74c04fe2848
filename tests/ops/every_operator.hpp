// Every operator once, on one device and stream, from the same numbers: for tests of where and in
// what surroundings operators run, which compare bits and need no reference.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <pumice/coords/set_operations.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/dense.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/interpolation.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/pooling.hpp>
#include <pumice/ops/rows.hpp>

#include "ops/device_support.hpp"

namespace pumice::test {

/// Results by what made them, on the host.
class NamedResults {
 public:
  void add(const std::string& name, const Tensor& tensor) { all_.emplace_back(name, back(tensor)); }
  const std::vector<std::pair<std::string, Tensor>>& all() const { return all_; }

 private:
  std::vector<std::pair<std::string, Tensor>> all_;
};

inline void expect_same_results(const NamedResults& actual, const NamedResults& expected) {
  ASSERT_EQ(actual.all().size(), expected.all().size());
  for (std::size_t i = 0; i < expected.all().size(); ++i)
    EXPECT_TRUE(same_bits(actual.all()[i].second, expected.all()[i].second))
        << expected.all()[i].first;
}

/// Inputs of one type on a device.
struct OperatorInputs {
  static constexpr std::int64_t kChannels = 20;

  OperatorInputs(std::int64_t rows, DType type, StreamView to)
      : stream(to), set(CoordinateSet::copy_to(chance_set(rows, 7), to)) {
    x = copy_to(stream, chance_tensor({rows, kChannels}, type, 1));
    y = copy_to(stream, chance_tensor({rows, kChannels}, type, 2));
    items = copy_to(stream, chance_tensor({5, kChannels}, type, 3));
    scale = copy_to(stream, chance_tensor({kChannels}, DType::f32, 4, 0.5, 1.5));
    shift = copy_to(stream, chance_tensor({kChannels}, DType::f32, 5));
  }
  Tensor weight(std::int64_t offsets, std::int64_t groups, std::int64_t out) const {
    return copy_to(stream, chance_tensor({offsets, kChannels / groups, out}, x.dtype(), 6));
  }

  StreamView stream;
  CoordinateSetPtr set;
  Tensor x, y, items, scale, shift;
};

inline void run_convolutions(const OperatorInputs& in, NamedResults& results) {
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  const KernelWindow halves{.size = axes(3, 2), .stride = axes(3, 2)};
  const KernelWindow steps{.size = axes(3, 3), .stride = axes(3, 2), .padding = axes(3, 1)};
  const KernelMapPtr cells = strided_map(in.set, halves, StridedOutputs::cell);
  const std::vector<std::pair<std::string, KernelMapPtr>> maps = {
      {"submanifold", submanifold_map(in.set, cube)},
      {"cells", cells},
      {"dilating", strided_map(in.set, steps, StridedOutputs::dilating)},
      {"transposed", transposed_map(cells->out(), in.set, halves)},
      {"generative", generative_map(cells->out(), halves)}};
  for (const auto& [name, map] : maps) {
    const KernelMapView view = map->view();
    const Tensor features =
        copy_to(in.stream, chance_tensor({view.in_rows, in.kChannels}, in.x.dtype(), 8));
    for (const std::int64_t groups : {std::int64_t{1}, in.kChannels}) {
      const std::string what = name + " in " + std::to_string(groups) + " groups, ";
      const std::int64_t out_channels = groups == 1 ? 36 : in.kChannels;
      const Tensor weight = in.weight(view.offsets, groups, out_channels);
      const Tensor grad =
          copy_to(in.stream, chance_tensor({view.out_rows, out_channels}, in.x.dtype(), 9));
      const ConvolutionOptions options{.groups = groups, .numerics = {.deterministic = true}};
      results.add(what + "output", convolution(features, weight, view, options));
      results.add(what + "input gradient", convolution_input_gradient(grad, weight, view, options));
      results.add(what + "weight gradient",
                  convolution_weight_gradient(features, grad, view, options));
    }
    const MaxPooled most = max_pool(features, view);
    const Tensor grad =
        copy_to(in.stream, chance_tensor({view.out_rows, in.kChannels}, in.x.dtype(), 10));
    results.add(name + " maximum", most.output);
    results.add(name + " maximum's row", most.argmax);
    results.add(name + " maximum's gradient", max_pool_gradient(grad, most.argmax, view));
    results.add(name + " average", average_pool(features, view));
    results.add(name + " average's gradient", average_pool_gradient(grad, view));
    results.add(name + " sum", sum_pool(features, view));
  }
  const Tensor weight = in.weight(1, 1, 36);
  const ConstTensorView matrix(weight.raw(), weight.dtype(), {in.kChannels, 36}, in.stream);
  const Tensor wide = linear(in.x, matrix);
  results.add("linear", wide);
  results.add("linear's input gradient", linear_input_gradient(wide, matrix));
  const ConstTensorView stored(weight.raw(), weight.dtype(), {36, in.kChannels}, in.stream);
  results.add("transposed linear's input gradient", linear_transposed_input_gradient(wide, stored));
  results.add("linear's weight gradient",
              linear_weight_gradient(in.x, wide, {.numerics = {.deterministic = true}}));
  results.add("bias gradient", bias_gradient(in.y));
}

inline void run_norms(const OperatorInputs& in, NamedResults& results) {
  const auto add = [&](const std::string& name, const Normalized& norm) {
    results.add(name, norm.output);
    results.add(name + "'s mean", norm.mean);
    results.add(name + "'s deviation", norm.inverse_deviation);
  };
  const auto add_gradients = [&](const std::string& name, const NormGradients& gradients) {
    results.add(name + "'s feature gradient", gradients.features);
    results.add(name + "'s weight gradient", gradients.weight);
    results.add(name + "'s bias gradient", gradients.bias);
  };
  Tensor mean = Tensor::zeros({in.kChannels}, DType::f32, in.stream);
  Tensor variance = Tensor::full({in.kChannels}, DType::f32, 1, in.stream);
  const Normalized batch =
      batch_norm_training(in.x, in.scale, in.shift, mean.view(), variance.view());
  add("batch norm", batch);
  results.add("running mean", mean);
  results.add("running variance", variance);
  add_gradients("batch norm", batch_norm_training_gradient(in.x, in.y, in.scale, batch.mean,
                                                           batch.inverse_deviation));
  results.add("settled norm", batch_norm_inference(in.x, mean, variance, in.scale, in.shift));
  add_gradients("settled norm",
                batch_norm_inference_gradient(in.x, in.y, mean, variance, in.scale));
  const Normalized layer = layer_norm(in.x, in.scale, in.shift);
  add("layer norm", layer);
  add_gradients("layer norm",
                layer_norm_gradient(in.x, in.y, in.scale, layer.mean, layer.inverse_deviation));
  const Normalized instance = instance_norm(in.x, *in.set, in.scale, in.shift);
  add("instance norm", instance);
  add_gradients("instance norm", instance_norm_gradient(in.x, in.y, *in.set, in.scale,
                                                        instance.mean, instance.inverse_deviation));
}

inline void run_elementwise(const OperatorInputs& in, NamedResults& results) {
  results.add("sum of two", add(in.x, in.y));
  results.add("product", multiply(in.x, in.y));
  results.add("difference", subtract(in.x, in.y));
  results.add("scaled", scale(in.x, 0.37));
  results.add("side by side", concatenate(in.x, in.y));
  for (const Activation activation : {Activation::relu, Activation::gelu, Activation::silu}) {
    results.add("activation", activate(in.x, activation));
    results.add("activation's gradient", activation_gradient(in.x, in.y, activation));
  }
  const GlobalMaxPooled most = global_max_pool(in.x, *in.set);
  results.add("largest of items", most.output);
  results.add("their rows", most.argmax);
  results.add("their gradient", global_max_pool_gradient(in.items, most.argmax, *in.set));
  results.add("average of items", global_average_pool(in.x, *in.set));
  results.add("its gradient", global_average_pool_gradient(in.items, *in.set));
  results.add("sum of items", global_sum_pool(in.x, *in.set));
  results.add("broadcast", broadcast(in.items, *in.set));
  results.add("broadcast, added", broadcast_add(in.x, in.items, *in.set));
  results.add("broadcast, multiplied", broadcast_multiply(in.x, in.items, *in.set));
  results.add("broadcast, beside", broadcast_concatenate(in.x, in.items, *in.set));
  const BroadcastGradients product = broadcast_multiply_gradient(in.x, in.items, in.y, *in.set);
  results.add("its features' gradient", product.features);
  results.add("its items' gradient", product.items);
}

inline void run_rows(const OperatorInputs& in, NamedResults& results) {
  const std::int64_t rows = in.x.rows();
  Tensor chosen({rows}, DType::i32);
  for (std::int64_t i = 0; i < rows; ++i)
    chosen.data<std::int32_t>()[i] = static_cast<std::int32_t>((i * 7 + 3) % (rows + 1) - 1);
  const Tensor row_of = copy_to(in.stream, chosen);
  results.add("taken rows", take_rows(in.x, row_of));
  results.add("scattered rows", scatter_rows(in.x, row_of, rows));
  for (const Reduction reduction : {Reduction::sum, Reduction::mean, Reduction::max}) {
    const ReducedRows reduced = reduce_rows(in.x, row_of, rows, reduction);
    results.add("reduced rows", reduced.output);
    if (reduced.source.defined()) results.add("their sources", reduced.source);
  }
  const Tensor dense = to_dense(in.x, *in.set);
  results.add("dense", dense);
  results.add("dense gradient", to_dense_gradient(dense, *in.set));
  if (rows > 0) results.add("bird's eye view", to_bev(in.x, *in.set, 2));
  Tensor points = chance_tensor({rows, 4}, DType::f32, 11, -10, 10);
  for (std::int64_t p = 0; p < rows; ++p)
    points.data<float>()[4 * p] = static_cast<float>(p % 5);
  const InterpolationMap map = interpolation_map(*in.set, copy_to(in.stream, points));
  results.add("corners", map.rows);
  results.add("their weights", map.weights);
  results.add("interpolation", interpolate(in.x, map));
  results.add("its gradient", interpolate_gradient(in.y, map));
}

/// All of them; waits.
inline NamedResults run_every_operator(std::int64_t rows, DType type, StreamView stream) {
  const OperatorInputs in(rows, type, stream);
  NamedResults results;
  run_convolutions(in, results);
  run_norms(in, results);
  run_elementwise(in, results);
  run_rows(in, results);
  wait(stream);
  return results;
}

}   // namespace pumice::test
