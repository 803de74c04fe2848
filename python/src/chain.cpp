// Convolutions, each with its batch norm, a residual and a ReLU, one after the other in one call:
// what a call costs the host is paid once for all of them.
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/maps/map_uses.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/normalization.hpp>

#include "framework_allocator.hpp"
#include "sites.hpp"
#include "tokens.hpp"

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
  // What passes ask of their maps. In training the way back has its share.
  MapUses training_uses;
  MapUses inference_uses;
  std::vector<std::size_t> last_use;   // of each value: the link that takes it last

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

/// The items of a tuple, borrowed.
class Items {
 public:
  Items(nb::handle tuple, std::size_t count, const char* name) : tuple_(tuple) {
    PUMICE_ENSURES(
        PyTuple_Check(tuple.ptr()) && PyTuple_Size(tuple.ptr()) == static_cast<Py_ssize_t>(count),
        name, " is no tuple of ", count);
  }
  nb::handle operator[](std::size_t index) const {
    return PyTuple_GetItem(tuple_.ptr(), static_cast<Py_ssize_t>(index));
  }

 private:
  nb::handle tuple_;
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

constexpr std::size_t kParameters = 3;   // a link

/// What a layer learns, looked at.
struct Parameters {
  ConstTensorView weight;   // [K, C_in, C_out]
  ConstTensorView scale;    // [C_out], of the norm
  ConstTensorView shift;
};

std::vector<Parameters> parameters_in(const Call& call, nb::handle tuple, const Chain& chain) {
  const Items items(tuple, kParameters * chain.size(), "parameters");
  std::vector<Parameters> all;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    all.push_back({.weight = call.view(items[kParameters * i], "weight"),
                   .scale = call.view(items[kParameters * i + 1], "weight of the norm"),
                   .shift = call.view(items[kParameters * i + 2], "bias of the norm")});
    PUMICE_EXPECTS(all.back().weight.rank() == 3, "weight has shape ",
                   to_string(all.back().weight.shape()),
                   ": give [offsets, input channels, output channels]");
  }
  return all;
}

struct Running {
  TensorView mean;   // [C_out]
  TensorView variance;
  TensorView batches;   // how many there were
};

std::vector<Running> running_in(const Call& call, nb::handle tuple, const Chain& chain) {
  constexpr std::size_t kEach = 3;
  const Items items(tuple, kEach * chain.size(), "running statistics");
  std::vector<Running> all;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    all.push_back({mutable_view_of(items[kEach * i], "running_mean", call.stream()),
                   mutable_view_of(items[kEach * i + 1], "running_var", call.stream()),
                   single_view_of(items[kEach * i + 2], "num_batches_tracked", call.stream())});
  }
  return all;
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
                nb::handle parameters_given, nb::handle running_given, const Switches& switches) {
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(features, home_of(maps.front()));
  const std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain);
  const std::vector<Running> running = running_in(call, running_given, chain);
  Values values(call, features, other, chain);
  auto record = std::make_shared<ChainRecord>();
  chain.training_uses.prepare(kernel_maps(maps));
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Link& link = chain.links[i];
    const Parameters& learned = parameters[i];
    ChainRecord::Link made;
    made.convolved = call.run([&] {
      return convolution(values[link.input], learned.weight, maps[i].view(), switches.options());
    });
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

/// Gradients of the parameters that sums are kept in the type of, in one piece of memory: made,
/// cleared and handed out at once. The others' gradients are tensors of their own.
class ParameterGradients {
 public:
  ParameterGradients(const Call& call, nb::handle like, nb::handle parameters_given,
                     const std::vector<Parameters>& parameters) {
    const Items items(parameters_given, kParameters * parameters.size(), "parameters");
    const DType wide = parameters.front().scale.dtype();
    for (const Parameters& of_link : parameters) {
      for (const ConstTensorView& parameter : {of_link.weight, of_link.scale, of_link.shift})
        add(parameter, wide, items[places_.size()]);
    }
    if (elements_ == 0) return;
    pieces_ = new_empty(like, Shape({elements_}), wide);
    const TensorView all = mutable_view_of(pieces_, "gradients", call.stream());
    const std::size_t bytes = size_of(wide);
    fill_bytes_async(all.raw(), std::byte{0}, static_cast<std::size_t>(elements_) * bytes,
                     call.stream());
    for (Place& place : places_) {
      if (place.offset < 0) continue;
      auto* data =
          static_cast<std::byte*>(all.raw()) + static_cast<std::size_t>(place.offset) * bytes;
      place.view = {data, wide, place.view.shape(), call.stream()};
    }
  }

  /// Zeros for the gradient of a link's parameter (0: weight, 1: scale, 2: shift); undefined: it
  /// has no room here.
  TensorView of(std::size_t link, std::size_t parameter) const {
    const Place& place = places_[kParameters * link + parameter];
    return place.offset < 0 ? TensorView{} : place.view;
  }

  /// Calls `put(index, tensor)` for those that have room here.
  template <class Put> void hand_out(Put&& put) const {
    if (elements_ == 0) return;
    const nb::object tensors = framework().cut(pieces_, likes_);
    std::size_t next = 0;
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].offset >= 0) put(i, nb::object(tensors[next++]));
    }
  }

 private:
  struct Place {
    TensorView view;   // its shape first, then where it lies
    std::int64_t offset = -1;
  };

  void add(ConstTensorView parameter, DType wide, nb::handle like) {
    // Kernels write sixteen bytes at once.
    const bool fits = parameter.dtype() == wide && parameter.elements() % 4 == 0;
    places_.push_back({{nullptr, wide, parameter.shape()}, fits ? elements_ : -1});
    if (!fits) return;
    elements_ += parameter.elements();
    likes_.append(like);
  }

  std::vector<Place> places_;   // in the order of the parameters
  std::int64_t elements_ = 0;
  nb::list likes_;
  nb::object pieces_;
};

nb::tuple gradients(nb::handle grad_output, nb::handle output, nb::handle features,
                    nb::handle other, Chain& chain, nb::handle maps_given,
                    nb::handle parameters_given, nb::handle token, const Switches& switches,
                    bool of_features, bool of_other) {
  const std::shared_ptr<const ChainRecord> record = record_of(token);
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(grad_output, home_of(maps.front()));
  const std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain);
  Values values(call, features, other, chain);
  for (std::size_t i = 0; i < chain.size(); ++i)
    values.set(i, record->links[i].normalized.output);
  const ConstTensorView last = call.view(output, "output");
  const ParameterGradients learned_gradients(call, grad_output, parameters_given, parameters);
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
    call.expect(learned.weight.shape(), learned.weight.dtype());
    put_parameter(kParameters * i, call.give(call.run([&] {
      return convolution_weight_gradient(values[link.input], of_norm.features, map, options);
    })));
    call.expect_no_more();
  }
  learned_gradients.hand_out(put_parameter);
  chain.training_uses.learn(kernel_maps(maps));
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
    ScaleShift folded;
    TileWeights packed;
  };
  std::vector<Link> links;

  ChainWeights(const ChainWeights&) = delete;
  ChainWeights& operator=(const ChainWeights&) = delete;
  ChainWeights(const Chain& chain, nb::handle like, nb::handle parameters_given,
               nb::handle running_given) {
    Call call(like);
    const std::vector<Parameters> parameters = parameters_in(call, parameters_given, chain);
    const std::vector<Running> running = running_in(call, running_given, chain);
    links.resize(chain.size());
    for (std::size_t i = 0; i < chain.size(); ++i) {
      links[i].weight = parameters[i].weight;
      links[i].folded = call.run([&] {
        return fold_batch_norm(running[i].mean, running[i].variance, parameters[i].scale,
                               parameters[i].shift, {}, chain.links[i].epsilon);
      });
    }
  }
};

nb::object infer(nb::handle features, nb::handle other, Chain& chain, nb::handle maps_given,
                 ChainWeights& weights, const Switches& switches) {
  const std::vector<Map> maps = maps_in(maps_given, chain);
  Call call(features, home_of(maps.front()));
  Values values(call, features, other, chain);
  chain.inference_uses.prepare(kernel_maps(maps));
  Tensor output;
  for (std::size_t i = 0; i < chain.size(); ++i) {
    const Link& link = chain.links[i];
    ChainWeights::Link& learned = weights.links[i];
    const KernelMapView map = maps[i].view();
    ConvolutionOptions options = switches.options();
    options.epilogue = {.scale = learned.folded.scale,
                        .shift = learned.folded.shift,
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
  return call.give(std::move(output));
}

}   // namespace

void bind_chain(nb::module_& module) {
  nb::class_<Chain>(module, "Chain", "Which values the links of a chain take.")
      .def(nb::init<const std::vector<std::tuple<int, int, bool, double, double>>&>(), "links"_a);
  nb::class_<ChainWeights>(module, "ChainWeights", "Folded and packed, for inference.")
      .def(nb::init<const Chain&, nb::handle, nb::handle, nb::handle>(), "chain"_a, "like"_a,
           "parameters"_a, "running"_a);
  module.def(
      "chain_training",
      [](nb::handle features, nb::handle other, Chain& chain, nb::handle maps,
         nb::handle parameters, nb::handle running, bool deterministic, bool tf32) {
        return train(features, other, chain, maps, parameters, running, {deterministic, tf32});
      },
      "features"_a, "other"_a.none(), "chain"_a, "maps"_a, "parameters"_a, "running"_a,
      "deterministic"_a, "tf32"_a,
      "(output, token of what the backward pass needs). The running statistics move.");
  module.def(
      "chain_gradients",
      [](nb::handle grad_output, nb::handle output, nb::handle features, nb::handle other,
         Chain& chain, nb::handle maps, nb::handle parameters, nb::handle token, bool deterministic,
         bool tf32, bool of_features, bool of_other) {
        return gradients(grad_output, output, features, other, chain, maps, parameters, token,
                         {deterministic, tf32}, of_features, of_other);
      },
      "grad_output"_a, "output"_a.none(), "features"_a, "other"_a.none(), "chain"_a, "maps"_a,
      "parameters"_a, "token"_a, "deterministic"_a, "tf32"_a, "of_features"_a, "of_other"_a,
      "(of the features, of the other, of each parameter), None where not wanted. `output`: where "
      "the "
      "last link has a ReLU.");
  module.def(
      "chain_inference",
      [](nb::handle features, nb::handle other, Chain& chain, nb::handle maps,
         ChainWeights& weights, bool deterministic, bool tf32) {
        return infer(features, other, chain, maps, weights, {deterministic, tf32});
      },
      "features"_a, "other"_a.none(), "chain"_a, "maps"_a, "weights"_a, "deterministic"_a,
      "tf32"_a);
}

}   // namespace pumice::python
