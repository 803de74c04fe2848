// Each layer beside the operators it is made of, and its gradients beside central differences.
// Covers activation, convolution, join, linear, normalization, pooling and sequential.
#include <gtest/gtest.h>

#include <pumice/nn/activation.hpp>
#include <pumice/nn/convolution.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/pooling.hpp>
#include <pumice/nn/sequential.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/pooling.hpp>

#include "nn/central_differences.hpp"
#include "nn/scenes.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header

const KernelWindow kHalving{.size = axes(3, 2), .stride = axes(3, 2)};
const KernelWindow kOverlapping{.size = axes(3, 3), .stride = axes(3, 2), .padding = axes(3, 1)};

ConvolutionSpec spec_of(ConvolutionMode mode, const KernelWindow& window, std::int64_t in,
                        std::int64_t out, bool bias = false, std::int64_t groups = 1) {
  return {.in_channels = in,
          .out_channels = out,
          .window = window,
          .mode = mode,
          .groups = groups,
          .bias = bias};
}

ConvolutionSpec submanifold_of(std::int64_t in, std::int64_t out, bool bias, std::int64_t groups) {
  ConvolutionSpec spec = submanifold(in, out);
  spec.bias = bias;
  spec.groups = groups;
  return spec;
}

Epilogue shift_of(const ParameterPtr& bias) {
  return bias == nullptr ? Epilogue{} : Epilogue{.shift = bias->value()};
}

void expect_gradients(const Forward& forward, Module& module, const SparseTensor& input) {
  const GradientReport report = GradientCheck(forward, module, input, 6).run();
  EXPECT_LT(report.worst, 1e-7) << report.where;
  EXPECT_EQ(report.silent, 0);
  EXPECT_GT(report.compared, 0);
}

/// In float64, initialised, norms stirred.
template <class M> M& prepared(M& module) {
  initialize(module, 5);
  module.to(DType::f64);
  stir(module);
  return module;
}

TEST(ConvolutionLayer, submanifold_is_the_operator_on_its_map_with_bias_and_groups) {
  const SparseTensor x = make_input(make_scene(), 4);
  for (const bool bias : {false, true}) {
    for (const std::int64_t groups : {1, 2, 4}) {
      Convolution layer(submanifold_of(4, 8, bias, groups));
      initialize(layer, 1);
      Context context;
      const SparseTensor y = layer.forward(x, context);
      const KernelMapPtr map = submanifold_map(x.coordinates, layer.spec().window);
      const Tensor expected = convolution(x.features, layer.weight()->value(), map->view(),
                                          {.groups = groups, .epilogue = shift_of(layer.bias())});
      EXPECT_TRUE(same_bits(y.features, expected)) << bias << groups;
      EXPECT_EQ(y.coordinates, x.coordinates);
      EXPECT_EQ(y.node, nullptr) << "nothing is recorded unless asked for";
    }
  }
}

TEST(ConvolutionLayer, strided_makes_its_own_sites_in_both_conventions) {
  const SparseTensor x = make_input(make_scene(), 3);
  for (const StridedOutputs outputs : {StridedOutputs::dilating, StridedOutputs::cell}) {
    ConvolutionSpec spec = spec_of(ConvolutionMode::strided, kOverlapping, 3, 5);
    spec.outputs = outputs;
    Convolution layer(spec);
    initialize(layer, 1);
    Context context;
    const SparseTensor y = layer.forward(x, context);
    const KernelMapPtr map = strided_map(x.coordinates, kOverlapping, outputs);
    EXPECT_TRUE(y.coordinates->same_rows(*map->out()));
    EXPECT_TRUE(
        same_bits(y.features, convolution(x.features, layer.weight()->value(), map->view())));
  }
}

TEST(ConvolutionLayer, inverse_goes_back_through_the_map_that_led_here_and_builds_none) {
  const SparseTensor x = make_input(make_scene(), 3);
  Convolution down(spec_of(ConvolutionMode::strided, kHalving, 3, 4));
  Convolution level(submanifold(4, 4));
  Convolution up(spec_of(ConvolutionMode::inverse, kHalving, 4, 2));
  for (Convolution* layer : {&down, &level, &up})
    initialize(*layer, 1);
  Context context;
  const SparseTensor coarse = level.forward(down.forward(x, context), context);
  ASSERT_EQ(x.maps->built(), 2);
  const SparseTensor y = up.forward(coarse, context);
  const SparseTensor named = up.forward(coarse, x.coordinates, context);
  EXPECT_EQ(x.maps->built(), 2);
  EXPECT_EQ(y.coordinates, x.coordinates);
  const KernelMapPtr map = x.maps->maps()[0];
  EXPECT_TRUE(same_bits(y.features, convolution(coarse.features, up.weight()->value(),
                                                pumice::transposed(map->view()))));
  EXPECT_TRUE(same_bits(y.features, named.features));
}

TEST(ConvolutionLayer, inverse_refuses_sites_no_convolution_led_to) {
  SparseTensor x = make_input(make_scene(), 4);
  Convolution up(spec_of(ConvolutionMode::inverse, kHalving, 4, 2));
  Context context;
  const std::string message = message_of([&] { up.forward(x, context); });
  EXPECT_NE(message.find("no convolution of window"), std::string::npos) << message;
  EXPECT_NE(message.find("use mode transposed"), std::string::npos) << message;

  Convolution down(spec_of(ConvolutionMode::strided, kHalving, 4, 4));
  const SparseTensor coarse = down.forward(x, context);
  const std::string stranger =
      message_of([&] { up.forward(coarse, make_scene({.seed = 9}), context); });
  EXPECT_NE(stranger.find("no convolution of window"), std::string::npos) << stranger;
}

TEST(ConvolutionLayer, inverse_does_not_go_back_through_a_generative_map) {
  const SparseTensor x = make_input(make_scene(), 3);
  Convolution grow(spec_of(ConvolutionMode::generative, kHalving, 3, 4));
  Convolution up(spec_of(ConvolutionMode::inverse, kHalving, 4, 2));
  for (Convolution* layer : {&grow, &up})
    initialize(*layer, 1);
  Context context;
  const SparseTensor fine = grow.forward(x, context);
  const std::string message = message_of([&] { up.forward(fine, context); });
  EXPECT_NE(message.find("no convolution of window"), std::string::npos) << message;
}

TEST(ConvolutionLayer, transposed_reads_the_map_that_led_here_from_the_other_side) {
  const SparseTensor x = make_input(make_scene(), 3);
  Convolution down(spec_of(ConvolutionMode::strided, kOverlapping, 3, 4));
  Convolution up(spec_of(ConvolutionMode::transposed, kOverlapping, 4, 2));
  for (Convolution* layer : {&down, &up})
    initialize(*layer, 1);
  Context context;
  const SparseTensor coarse = down.forward(x, context);
  const SparseTensor y = up.forward(coarse, x.coordinates, context);
  EXPECT_EQ(x.maps->built(), 1);
  const KernelMapPtr searched = transposed_map(coarse.coordinates, x.coordinates, kOverlapping);
  EXPECT_EQ(y.coordinates, x.coordinates);
  EXPECT_TRUE(
      same_bits(y.features, convolution(coarse.features, up.weight()->value(), searched->view())));
}

TEST(ConvolutionLayer, transposed_goes_onto_given_sites_and_generative_onto_all_it_reaches) {
  const CoordinateSetPtr fine = make_scene({.seed = 4});
  const SparseTensor x = make_input(coarsen(*fine, axes(3, 2)), 3);
  Convolution onto(spec_of(ConvolutionMode::transposed, kOverlapping, 3, 2));
  Convolution grow(spec_of(ConvolutionMode::generative, kOverlapping, 3, 2));
  initialize(onto, 1);
  initialize(grow, 1);
  Context context;
  const SparseTensor there = onto.forward(x, fine, context);
  EXPECT_EQ(there.coordinates, fine);
  EXPECT_TRUE(
      same_bits(there.features,
                convolution(x.features, onto.weight()->value(),
                            transposed_map(x.coordinates, fine, onto.spec().window)->view())));
  const SparseTensor grown = grow.forward(x, context);
  const KernelMapPtr map = generative_map(x.coordinates, grow.spec().window);
  EXPECT_TRUE(grown.coordinates->same_rows(*map->out()));
  EXPECT_TRUE(
      same_bits(grown.features, convolution(x.features, grow.weight()->value(), map->view())));
}

TEST(ConvolutionLayer, mistakes_are_named_with_layer_value_and_remedy) {
  const SparseTensor x = make_input(make_scene(), 4);
  Context context;
  Sequential net({std::make_shared<Convolution>(submanifold(5, 8))});
  EXPECT_EQ(message_of([&] { net.forward(x, context); }),
            "0: features have 4 channels, the layer takes 5");
  Convolution half(submanifold(4, 8));
  half.to(DType::f16);
  EXPECT_EQ(message_of([&] { half.forward(x, context); }),
            "the layer: features are f32, weights f16; convert one with to()");
  EXPECT_EQ(message_of([] { Convolution({.in_channels = 4, .out_channels = 6, .groups = 4}); }),
            "convolution: groups = 4 must divide in_channels = 4 and out_channels = 6");
  Convolution transposed(spec_of(ConvolutionMode::transposed, kHalving, 4, 4));
  EXPECT_NE(message_of([&] { transposed.forward(x, context); }).find("pass their coordinates"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              half.forward(x, x.coordinates, context);
            }).find("cannot be sent to given sites"),
            std::string::npos);
}

TEST(ConvolutionLayer, gradients_of_every_mode_agree_with_central_differences) {
  const CoordinateSetPtr fine = make_scene({.sites = 40});
  const SparseTensor x = make_input(fine, 4, DType::f64);
  const SparseTensor small = make_input(coarsen(*fine, axes(3, 2)), 4, DType::f64);
  Convolution one(submanifold_of(4, 6, true, 2));
  expect_gradients([&](SparseTensor in, Context& c) { return one.forward(std::move(in), c); },
                   prepared(one), x);
  Convolution strided(spec_of(ConvolutionMode::strided, kOverlapping, 4, 3, true));
  expect_gradients([&](SparseTensor in, Context& c) { return strided.forward(std::move(in), c); },
                   prepared(strided), x);
  Convolution onto(spec_of(ConvolutionMode::transposed, kHalving, 4, 3, true));
  expect_gradients(
      [&](SparseTensor in, Context& c) { return onto.forward(std::move(in), fine, c); },
      prepared(onto), small);
  Convolution grow(spec_of(ConvolutionMode::generative, kHalving, 4, 3, true));
  expect_gradients([&](SparseTensor in, Context& c) { return grow.forward(std::move(in), c); },
                   prepared(grow), small);
  Sequential there_and_back(
      {std::make_shared<Convolution>(spec_of(ConvolutionMode::strided, kHalving, 4, 3)),
       std::make_shared<Convolution>(spec_of(ConvolutionMode::inverse, kHalving, 3, 2, true))});
  expect_gradients(
      [&](SparseTensor in, Context& c) { return there_and_back.forward(std::move(in), c); },
      prepared(there_and_back), x);
}

TEST(NormLayers, are_the_operators_and_move_their_running_statistics) {
  const SparseTensor x = make_input(make_scene(), 6);
  Context context;
  BatchNorm batch(6);
  stir(batch);
  const auto value = [&](const Module& module, const char* name) {
    return parameter_of(module, name)->value();
  };
  batch.eval();
  EXPECT_TRUE(same_bits(
      batch.forward(x, context).features,
      batch_norm_inference(x.features, value(batch, "running_mean"), value(batch, "running_var"),
                           value(batch, "weight"), value(batch, "bias"))));
  batch.train();
  Tensor mean = value(batch, "running_mean").clone();
  Tensor variance = value(batch, "running_var").clone();
  const Tensor y = batch.forward(x, context).features;
  EXPECT_TRUE(same_bits(y, batch_norm_training(x.features, value(batch, "weight"),
                                               value(batch, "bias"), mean.view(), variance.view())
                               .output));
  EXPECT_TRUE(same_bits(value(batch, "running_mean"), mean));
  EXPECT_TRUE(same_bits(value(batch, "running_var"), variance));

  LayerNorm layer(6);
  stir(layer);
  EXPECT_TRUE(
      same_bits(layer.forward(x, context).features,
                layer_norm(x.features, value(layer, "weight"), value(layer, "bias")).output));
  InstanceNorm instance(6);
  stir(instance);
  EXPECT_TRUE(same_bits(
      instance.forward(x, context).features,
      instance_norm(x.features, *x.coordinates, value(instance, "weight"), value(instance, "bias"))
          .output));
}

TEST(NormLayers, gradients_agree_with_central_differences_in_training_and_evaluation) {
  const SparseTensor x = make_input(make_scene(), 5, DType::f64);
  BatchNorm batch(5);
  LayerNorm layer(5);
  InstanceNorm instance(5);
  for (Module* norm : {static_cast<Module*>(&batch), static_cast<Module*>(&layer),
                       static_cast<Module*>(&instance)}) {
    const Forward forward = [norm](SparseTensor in, Context& c) {
      return norm->forward(std::move(in), c);
    };
    expect_gradients(forward, prepared(*norm), x);
    norm->eval();
    expect_gradients(forward, *norm, x);
  }
}

TEST(DenseLayers, linear_holds_its_weight_as_pytorch_does) {
  const SparseTensor x = make_input(make_scene(), 2);
  Linear layer(2, 3);
  // y = W x + b with W [3, 2]
  const std::vector<float> weight{1, 2, 3, 4, 5, 6};
  const std::vector<float> bias{0.5F, -1, 8};
  parameter_of(layer, "weight")->set(Tensor::from(std::span<const float>(weight), {3, 2}));
  parameter_of(layer, "bias")->set(Tensor::from(std::span<const float>(bias), {3}));
  Context context;
  const Tensor y = layer.forward(x, context).features;
  for (std::int64_t row = 0; row < y.rows(); ++row) {
    const float a = x.features.data<float>()[2 * row];
    const float b = x.features.data<float>()[2 * row + 1];
    for (std::int64_t c = 0; c < 3; ++c) {
      const auto at = static_cast<std::size_t>(c);
      EXPECT_NEAR(y.data<float>()[3 * row + c],
                  weight[2 * at] * a + weight[2 * at + 1] * b + bias[at], 1e-5);
    }
  }
  prepared(layer);
  expect_gradients([&](SparseTensor in, Context& c) { return layer.forward(std::move(in), c); },
                   layer, make_input(x.coordinates, 2, DType::f64));
}

TEST(DenseLayers, activations_are_the_operator_and_have_its_gradient) {
  const SparseTensor x = make_input(make_scene(), 3);
  for (const Activation kind :
       {Activation::none, Activation::relu, Activation::leaky_relu, Activation::silu,
        Activation::gelu, Activation::sigmoid, Activation::tanh}) {
    Activate layer(kind, 0.2);
    Context context;
    EXPECT_TRUE(same_bits(layer.forward(x, context).features, activate(x.features, kind, 0.2)));
    expect_gradients([&](SparseTensor in, Context& c) { return layer.forward(std::move(in), c); },
                     layer, make_input(x.coordinates, 3, DType::f64));
  }
}

TEST(PoolLayers, are_the_operators_on_the_map_of_their_window) {
  const SparseTensor x = make_input(make_scene(), 3);
  Context context;
  const KernelMapPtr map = strided_map(x.coordinates, kOverlapping, StridedOutputs::dilating);
  const auto pooled = [&](Pooling pooling) {
    return Pool(pooling, kOverlapping).forward(x, context).features;
  };
  EXPECT_TRUE(same_bits(pooled(Pooling::max), max_pool(x.features, map->view()).output));
  EXPECT_TRUE(same_bits(pooled(Pooling::average), average_pool(x.features, map->view())));
  EXPECT_TRUE(same_bits(pooled(Pooling::sum), sum_pool(x.features, map->view())));
  const KernelWindow centred = submanifold_window(3, axes(3, 3), axes(3, 1));
  const SparseTensor same = Pool(Pooling::max, centred).forward(x, context);
  EXPECT_EQ(same.coordinates, x.coordinates);

  const auto global = [&](Pooling pooling) { return GlobalPool(pooling).forward(x, context); };
  EXPECT_TRUE(
      same_bits(global(Pooling::max).features, global_max_pool(x.features, *x.coordinates).output));
  EXPECT_TRUE(same_bits(global(Pooling::average).features,
                        global_average_pool(x.features, *x.coordinates)));
  EXPECT_TRUE(
      same_bits(global(Pooling::sum).features, global_sum_pool(x.features, *x.coordinates)));
  EXPECT_EQ(global(Pooling::sum).coordinates->size(), 2);
}

TEST(PoolLayers, gradients_agree_with_central_differences) {
  const SparseTensor x = make_input(make_scene(), 3, DType::f64);
  for (const Pooling pooling : {Pooling::max, Pooling::average, Pooling::sum}) {
    Pool local(pooling, kOverlapping);
    expect_gradients([&](SparseTensor in, Context& c) { return local.forward(std::move(in), c); },
                     local, x);
    GlobalPool global(pooling);
    expect_gradients([&](SparseTensor in, Context& c) { return global.forward(std::move(in), c); },
                     global, x);
  }
}

TEST(Joins, meet_on_equal_sites_and_refuse_others) {
  const SparseTensor x = make_input(make_scene(), 3);
  const SparseTensor y = make_input(x.coordinates, 3, DType::f32, 8);
  const SparseTensor other = make_input(make_scene({.seed = 6}), 3);
  Context context;
  EXPECT_TRUE(same_bits(add(x, y, context).features, pumice::add(x.features, y.features)));
  EXPECT_TRUE(same_bits(concatenate(x, y, context).features,
                        pumice::concatenate(x.features.view(), y.features.view())));
  ASSERT_EQ(x.rows(), other.rows());
  EXPECT_NE(message_of([&] { add(x, other, context); }).find("use unite_add"), std::string::npos);
  EXPECT_NE(message_of([&] { concatenate(x, other, context); }).find("use unite_concatenate"),
            std::string::npos);
  const UnionSet sites = unite(*x.coordinates, *other.coordinates);
  EXPECT_TRUE(same_bits(unite_add(x, other, context).features,
                        pumice::add(x.features, other.features, sites)));
  EXPECT_TRUE(same_bits(unite_concatenate(x, other, context).features,
                        pumice::concatenate(x.features, other.features, sites)));
}

TEST(Joins, gradients_agree_with_central_differences) {
  const SparseTensor x = make_input(make_scene(), 3, DType::f64);
  const CoordinateSetPtr other = make_scene({.seed = 6});
  Linear left(3, 4);
  Linear right(3, 4);
  prepared(left);
  prepared(right);
  using Join = SparseTensor (*)(const SparseTensor&, const SparseTensor&, Context&);
  for (const Join join :
       {Join{&concatenate}, Join{&add}, Join{&unite_concatenate}, Join{&unite_add}}) {
    const Forward forward = [&](SparseTensor in, Context& c) {
      const SparseTensor a = left.forward(in, c);
      SparseTensor b = right.forward(in, c);
      if (join == &unite_add || join == &unite_concatenate) b.coordinates = other;
      return join(a, b, c);
    };
    expect_gradients(forward, left, x);
    expect_gradients(forward, right, x);
  }
}

TEST(ResidualBlockLayer, adds_the_shortcut_and_has_its_gradient) {
  const SparseTensor x = make_input(make_scene(), 4, DType::f64);
  for (const std::int64_t out : {4, 6}) {
    ResidualBlock block(4, out);
    EXPECT_EQ(block.parameters().size(), out == 4 ? 10U : 15U);
    expect_gradients([&](SparseTensor in, Context& c) { return block.forward(std::move(in), c); },
                     prepared(block), x);
  }
}

}   // namespace
}   // namespace pumice::nn
