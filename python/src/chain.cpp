// Convolutions, each with its batch norm, a residual and a ReLU, one after the other in one call:
// what a call costs the host is paid once for all of them.
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/error.hpp>
#include <pumice/maps/map_uses.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/folded_norm.hpp>
#include <pumice/ops/normalization.hpp>

#include "arguments.hpp"
#include "chain_parameters.hpp"
#include "sites.hpp"
#include "tokens.hpp"
#include "weight_layouts.hpp"

using namespace nanobind::literals;

namespace pumice::python {

/// What a backward pass needs of its forward pass, link by link. Without the last output, which
/// autograd holds: it leads to whoever holds this, and both would live forever.
struct ChainRecord {
  struct Link {
    Tensor convolved;
    Normalized normalized;
  };
  std::vector<Link> links;
  Tensor turned;   // weights, see WeightLayouts
};

namespace {

/// Values 0 and 1 are what a chain is given; value 2 + i is what link i makes.
constexpr std::size_t kGiven = 2;

/// relu(norm(convolution(value `input`)) + value `residual`)
struct Link {
  std::size_t input;
  std::optional<std::size_t> residual;
  bool relu;
  double epsilon;
  double momentum;
};

struct Chain {
  std::vector<Link> links;
  std::vector<std::size_t> last_use;   // of each value: the link that takes it last

  // Guesses of what the next pass asks of its maps (in training the way back has its share) and of
  // its weights. All else here stays as it was made.
  MapUses training_uses;
  MapUses inference_uses;
  TileWeightUses forward_weights;
  TileWeightUses backward_weights;
  TileWeightUses inference_weights;

  /// Rows of (input, residual or -1, relu, epsilon, momentum).
  explicit Chain(const std::vector<std::tuple<int, int, bool, double, double>>& rows) {
    for (const auto& [input, residual, relu, epsilon, momentum] : rows) {
      const int made = static_cast<int>(kGiven + links.size());
      PUMICE_ENSURES(input >= 0 && input < made && residual >= -1 && residual < made, "link ",
                     links.size(), " takes values ", input, " and ", residual);
      Link link{static_cast<std::size_t>(input), std::nullopt, relu, epsilon, momentum};
      if (residual >= 0) link.residual = static_cast<std::size_t>(residual);
      links.push_back(link);
    }
    PUMICE_ENSURES(!links.empty(), "a chain of no links");
    last_use.assign(kGiven + links.size(), 0);
    for (std::size_t i = 0; i < links.size(); ++i) {
      last_use[links[i].input] = i;
      if (links[i].residual) last_use[*links[i].residual] = i;
    }
  }
  std::size_t size() const { return links.size(); }
};

std::vector<const KernelMap*> kernel_maps(const std::vector<Map>& maps) {
  std::vector<const KernelMap*> result;
  for (const Map& map : maps)
    result.push_back(map.view().map);
  return result;
}

std::vector<Map> maps_in(nb::handle tuple, const Chain& chain) {
  const Items items(tuple, chain.size(), "maps");
  std::vector<Map> maps;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    maps.push_back(nb::cast<const Map&>(items[i]));
    PUMICE_ENSURES(home_of(maps.back()).native == home_of(maps.front()).native,
                   "the maps of a chain belong to several streams");
  }
  return maps;
}

struct Switches {
  bool deterministic;
  bool tf32;

  ConvolutionOptions options() const {
    return {.deterministic = deterministic, .tf32 = tf32, .rounds_weight = true};
  }
};

/// Numbers that links take: what was given, and what they made.
class Values {
 public:
  Values(const Call& call, nb::handle features, nb::handle other, const Chain& chain)
      : made_(kGiven + chain.size()),
        given_{call.view(features, "features"), call.view(other, "residual")} {}

  ConstTensorView operator[](std::size_t value) const {
    return value < kGiven ? given_[value] : made_[value].view();
  }
  ConstTensorView residual_of(const Link& link) const {
    return link.residual ? (*this)[*link.residual] : ConstTensorView{};
  }
  void set(std::size_t link, Tensor made) { made_[kGiven + link] = std::move(made); }
  void drop(std::size_t value) { made_[value] = {}; }

 private:
  std::vector<Tensor> made_;
  ConstTensorView given_[kGiven];
};

nb::tuple train(nb::handle features, nb::handle other, Chain& chain, nb::handle maps_given,
                nb::handle parameters_given, nb::handle layouts_given, nb::handle running_given,
                const Switches& switches) {
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(features, home_of(maps.front()));
  std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain.size());
  const WeightLayouts layouts(layouts_given, parameters);
  const std::vector<Running> running = running_in(call, running_given, chain.size());
  Values values(call, features, other, chain);
  auto record = std::make_shared<ChainRecord>();
  record->turned = layouts.turn(call, parameters);
  chain.training_uses.prepare(kernel_maps(maps));
  PackedLinks packed(chain.forward_weights, parameters, call.stream());
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Link& link = chain.links[i];
    const Parameters& learned = parameters[i];
    ChainRecord::Link made;
    ConvolutionOptions options = switches.options();
    options.tile_weights = packed.of(i);
    made.convolved = call.run(
        [&] { return convolution(values[link.input], learned.weight, maps[i].view(), options); });
    if (i + 1 == chain.size()) call.expect(made.convolved.shape(), made.convolved.dtype());
    made.normalized = call.run([&] {
      return batch_norm_training(
          made.convolved, learned.scale, learned.shift, running[i].mean, running[i].variance,
          {.epsilon = link.epsilon, .momentum = link.momentum, .batches = running[i].batches},
          {.residual = values.residual_of(link), .relu = link.relu});
    });
    values.set(i, made.normalized.output);
    record->links.push_back(std::move(made));
  }
  packed.learn();
  nb::object output = call.give(std::exchange(record->links.back().normalized.output, {}));
  return nb::make_tuple(std::move(output), token_of(std::move(record)));
}

/// Gradients of values, which add up where several links take the same one.
class Gradients {
 public:
  Gradients(const Chain& chain, ConstTensorView of_last, bool of_features, bool of_other)
      : of_last_(of_last), found_(kGiven + chain.size()), wanted_{of_features, of_other} {}

  bool wanted(std::size_t value) const { return value >= kGiven || wanted_[value]; }
  ConstTensorView of(std::size_t value) const {
    return value + 1 == found_.size() ? of_last_ : found_[value].view();
  }
  void set(std::size_t value, Tensor gradient) { found_[value] = std::move(gradient); }
  void add(std::size_t value, Tensor gradient) {
    Tensor& found = found_[value];
    found = found.defined() ? pumice::add(found, gradient) : std::move(gradient);
  }
  void drop(std::size_t value) { found_[value] = {}; }
  Tensor take(std::size_t value) { return std::move(found_[value]); }

 private:
  ConstTensorView of_last_;
  std::vector<Tensor> found_;
  bool wanted_[kGiven];
};

nb::tuple gradients(nb::handle grad_output, nb::handle output, nb::handle features,
                    nb::handle other, Chain& chain, nb::handle maps_given,
                    nb::handle parameters_given, nb::handle layouts_given, nb::handle token,
                    const Switches& switches, bool of_features, bool of_other) {
  const std::shared_ptr<const ChainRecord> record = record_of(token);
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(grad_output, home_of(maps.front()));
  std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain.size());
  const WeightLayouts layouts(layouts_given, parameters);
  layouts.look_at(record->turned, parameters, call.stream());
  Values values(call, features, other, chain);
  for (std::size_t i = 0; i < chain.size(); ++i)
    values.set(i, record->links[i].normalized.output);
  const ConstTensorView last = call.view(output, "output");
  ParameterGradients learned_gradients(call, grad_output, parameters_given, parameters, layouts);
  PackedLinks packed(chain.backward_weights, parameters, call.stream());
  Gradients found(chain, call.view(grad_output, "grad_output"), of_features, of_other);
  nb::object result = nb::steal(PyTuple_New(static_cast<Py_ssize_t>(2 + 3 * chain.size())));
  const auto put = [&](std::size_t index, nb::object tensor) {
    PyTuple_SetItem(result.ptr(), static_cast<Py_ssize_t>(index), tensor.release().ptr());
  };
  const auto put_parameter = [&](std::size_t index, nb::object tensor) {
    put(kGiven + index, std::move(tensor));
  };
  for (std::size_t i = chain.size(); i-- > 0;) {
    const Link& link = chain.links[i];
    const Parameters& learned = parameters[i];
    const ChainRecord::Link& made = record->links[i];
    const KernelMapView map = maps[i].view();
    const bool passes = link.residual && found.wanted(*link.residual);
    const ConstTensorView normalized = i + 1 == chain.size() ? last : made.normalized.output.view();
    const TensorView of_scale = learned_gradients.of(i, 1);
    const TensorView of_shift = learned_gradients.of(i, 2);
    if (!of_scale.defined()) call.expect(learned.scale.shape(), learned.scale.dtype());
    if (passes && *link.residual < kGiven)
      call.expect(values[*link.residual].shape(), values[*link.residual].dtype());
    NormGradients of_norm = call.run([&] {
      return batch_norm_training_gradient(made.convolved, found.of(kGiven + i), learned.scale,
                                          made.normalized.mean, made.normalized.inverse_deviation,
                                          {.output = link.relu ? normalized : ConstTensorView{},
                                           .residual = passes,
                                           .of_weight = of_scale,
                                           .of_bias = of_shift});
    });
    call.expect_no_more();
    found.drop(kGiven + i);
    if (!of_scale.defined()) {
      put_parameter(kParameters * i + 1, call.give(std::move(of_norm.weight)));
      put_parameter(kParameters * i + 2, call.give(std::move(of_norm.bias)));
    }
    if (passes) call.run([&] { found.add(*link.residual, std::move(of_norm.residual)); });
    if (found.wanted(link.input)) {
      ConvolutionOptions options = switches.options();
      options.epilogue.residual = found.of(link.input);
      options.tile_weights = packed.of(i);
      if (link.input < kGiven) call.expect(values[link.input].shape(), values[link.input].dtype());
      found.set(link.input, call.run([&] {
        return convolution_input_gradient(of_norm.features, learned.weight, map, options);
      }));
      call.expect_no_more();
    }
    ConvolutionOptions options = switches.options();
    const TensorView of_weight = learned_gradients.of(i, 0);
    if (of_weight.defined()) {
      call.run([&] {
        convolution_weight_gradient_into(of_weight, values[link.input], of_norm.features, map,
                                         options);
      });
      continue;
    }
    options.wide_weight_gradient = learned.weight.dtype() == DType::f32;
    const auto find_gradient = [&] {
      return convolution_weight_gradient(values[link.input], of_norm.features, map, options);
    };
    Tensor own;
    if (layouts.is_given(i)) own = call.run(find_gradient);
    call.expect(layouts.given_shape(i), learned.weight.dtype());
    put_parameter(kParameters * i, call.give(call.run([&] {
      return own.defined() ? layouts.given_back(i, own) : find_gradient();
    })));
    call.expect_no_more();
  }
  std::vector<nb::object> of_parameters = learned_gradients.tensors();
  for (std::size_t i = 0; i < of_parameters.size(); ++i) {
    if (of_parameters[i].is_valid()) put_parameter(i, std::move(of_parameters[i]));
  }
  chain.training_uses.learn(kernel_maps(maps));
  packed.learn();
  for (std::size_t value = 0; value < kGiven; ++value) {
    Tensor gradient = found.take(value);
    put(value, gradient.defined() ? call.give(std::move(gradient)) : nb::none());
  }
  return nb::borrow<nb::tuple>(result);
}

/// Weights of layers in evaluation: norms folded, packed once. They look at tensors of the
/// framework, which the caller keeps and watches.
struct ChainWeights {
  struct Link {
    ConstTensorView weight;
    TileWeights packed;
  };
  std::vector<Link> links;
  Tensor turned;   // weights, see WeightLayouts
  ScaleShifts folded;
  MadeOf made_of;

  std::vector<TileWeights*> packed() {
    std::vector<TileWeights*> all;
    for (Link& link : links)
      all.push_back(&link.packed);
    return all;
  }
  void pack(const TileWeightUses& uses, StreamView stream) {
    std::vector<ConstTensorView> weights;
    for (const Link& link : links)
      weights.push_back(link.weight);
    uses.pack(weights, packed(), stream);
  }

  ChainWeights(const ChainWeights&) = delete;
  ChainWeights& operator=(const ChainWeights&) = delete;
  ChainWeights(const Chain& chain, nb::handle like, nb::handle parameters_given,
               nb::handle layouts_given, nb::handle running_given)
      : made_of(parameters_given, running_given) {
    Call call(like);
    std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain.size());
    turned = WeightLayouts(layouts_given, parameters).turn(call, parameters);
    const std::vector<Running> running = running_in(call, running_given, chain.size());
    links.resize(chain.size());
    std::vector<SettledNorm> norms;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      links[i].weight = parameters[i].weight;
      norms.push_back({.mean = running[i].mean,
                       .variance = running[i].variance,
                       .weight = parameters[i].scale,
                       .bias = parameters[i].shift,
                       .epsilon = chain.links[i].epsilon});
    }
    folded = call.run([&] { return fold_batch_norms(norms); });
  }
};

nb::object infer(nb::handle features, nb::handle other, Chain& chain, nb::handle maps_given,
                 ChainWeights& weights, const Switches& switches) {
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(features, home_of(maps.front()));
  Values values(call, features, other, chain);
  chain.inference_uses.prepare(kernel_maps(maps));
  weights.pack(chain.inference_weights, call.stream());
  Tensor output;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Link& link = chain.links[i];
    ChainWeights::Link& learned = weights.links[i];
    const KernelMapView map = maps[i].view();
    ConvolutionOptions options = switches.options();
    options.epilogue = {.scale = weights.folded.of_norm[i].scale,
                        .shift = weights.folded.of_norm[i].shift,
                        .residual = values.residual_of(link),
                        .activation = link.relu ? Activation::relu : Activation::none};
    options.tile_weights = &learned.packed;
    const ConstTensorView input = values[link.input];
    if (i + 1 == chain.size()) call.expect({map.out_rows, learned.weight.extent(2)}, input.dtype());
    output = call.run([&] { return convolution(input, learned.weight, map, options); });
    values.set(i, output);
    for (const std::size_t value : {link.input, link.residual.value_or(link.input)}) {
      if (chain.last_use[value] == i) values.drop(value);
    }
  }
  chain.inference_uses.learn(kernel_maps(maps));
  chain.inference_weights.learn(weights.packed());
  return call.give(std::move(output));
}

}   // namespace

void bind_chain(nb::module_& module) {
  nb::class_<Chain>(module, "Chain", "Which values the links of a chain take.")
      .def(nb::init<const std::vector<std::tuple<int, int, bool, double, double>>&>(), "links"_a);
  nb::class_<ChainWeights>(module, "ChainWeights", "Folded and packed, for inference.")
      .def(nb::init<const Chain&, nb::handle, nb::handle, nb::handle, nb::handle>(), "chain"_a,
           "like"_a, "parameters"_a, "layouts"_a, "running"_a)
      .def(
          "is_of",
          [](const ChainWeights& weights, nb::handle parameters, nb::handle running) {
            return weights.made_of == MadeOf(parameters, running);
          },
          "parameters"_a, "running"_a,
          "Whether they were made of these tensors, and nobody has written into them since. The "
          "caller keeps alive what they were made of.");
  define(module, "types_fit", &types_fit, "features"_a, "other"_a.none(), "parameters"_a,
         "running"_a, "rounds"_a, "Whether kernels take these types, for a chain.");
  define(
      module, "chain_training",
      [](nb::handle features, nb::handle other, Chain& chain, nb::handle maps,
         nb::handle parameters, nb::handle layouts, nb::handle running, bool deterministic,
         bool tf32) {
        return train(features, other, chain, maps, parameters, layouts, running,
                     {deterministic, tf32});
      },
      "features"_a, "other"_a.none(), "chain"_a, "maps"_a, "parameters"_a, "layouts"_a, "running"_a,
      "deterministic"_a, "tf32"_a,
      "(output, token of what the backward pass needs). The running statistics move.");
  define(
      module, "chain_gradients",
      [](nb::handle grad_output, nb::handle output, nb::handle features, nb::handle other,
         Chain& chain, nb::handle maps, nb::handle parameters, nb::handle layouts, nb::handle token,
         bool deterministic, bool tf32, bool of_features, bool of_other) {
        return gradients(grad_output, output, features, other, chain, maps, parameters, layouts,
                         token, {deterministic, tf32}, of_features, of_other);
      },
      "grad_output"_a, "output"_a.none(), "features"_a, "other"_a.none(), "chain"_a, "maps"_a,
      "parameters"_a, "layouts"_a, "token"_a, "deterministic"_a, "tf32"_a, "of_features"_a,
      "of_other"_a,
      "(of the features, of the other, of each parameter), None where not wanted. `output`: where "
      "the "
      "last link has a ReLU.");
  define(
      module, "chain_inference",
      [](nb::handle features, nb::handle other, Chain& chain, nb::handle maps,
         ChainWeights& weights, bool deterministic, bool tf32) {
        return infer(features, other, chain, maps, weights, {deterministic, tf32});
      },
      "features"_a, "other"_a.none(), "chain"_a, "maps"_a, "weights"_a, "deterministic"_a,
      "tf32"_a);
}

}   // namespace pumice::python
