// Chains of layers (pumice/nn/chain.hpp) on tensors of the framework.
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arguments.hpp"
#include "chain_calls.hpp"
#include "chain_tensors.hpp"
#include "framework_allocator.hpp"
#include "plans.hpp"
#include "sites.hpp"
#include "tokens.hpp"

using namespace nanobind::literals;

namespace pumice::python {
namespace {

using nn::Chain;
using Link = std::tuple<int, int, int, bool, double, double>;

/// Of rows of (input, second or -1, residual or -1, relu, epsilon, momentum), and the plans of each
/// or None.
std::vector<nn::ChainLink> links_of(const std::vector<Link>& rows, nb::handle plans) {
  std::vector<nn::ChainLink> links;
  const auto maybe = [](int value) {
    return value < 0 ? std::optional<std::size_t>() : static_cast<std::size_t>(value);
  };
  for (const auto& [input, second, residual, relu, epsilon, momentum] : rows) {
    nn::ChainLink& link = links.emplace_back();
    link = {.input = static_cast<std::size_t>(input),
            .second = maybe(second),
            .residual = maybe(residual),
            .relu = relu,
            .epsilon = epsilon,
            .momentum = momentum};
  }
  if (plans.is_none()) return links;
  const Items given(plans, links.size(), "plans of links");
  for (std::size_t i = 0; i < links.size(); ++i) {
    if (!given[i].is_none()) links[i].plans = nb::cast<const Plans&>(given[i]).plans;
  }
  return links;
}

StreamView home_of(const std::vector<KernelMapView>& maps) {
  return maps.front().map->in()->stream();
}

nn::ChainInput input_of(const Call& call, nb::handle features, nb::handle other,
                        const std::vector<KernelMapView>& maps, const Numerics& numerics) {
  return {.features = call.view(features, "features"),
          .other = call.view(other, "residual"),
          .maps = maps,
          .numerics = numerics};
}

nb::tuple train(nb::handle features, nb::handle other, Chain& chain, nb::handle maps_given,
                nb::handle parameters_given, nb::handle layouts, nb::handle running_given,
                bool deterministic, bool tf32, bool of_features, bool of_other) {
  const std::vector<KernelMapView> maps = maps_in(maps_given, chain.size());
  const Call call(features, home_of(maps));
  const auto parameters = parameters_in(call, parameters_given, layouts, chain.size());
  const auto running = running_in(call, running_given, chain.size());
  nn::ChainInput input = input_of(call, features, other, maps, {deterministic, tf32});
  input.features_learn = of_features;
  input.other_learns = of_other;
  release_inference_memory(call.stream().device);
  nn::ChainTrained made =
      call.run([&] { return chain.train(input, parameters, running, call.results()); });
  nb::object output = call.give(std::exchange(made.output, {}));
  return nb::make_tuple(std::move(output), token_of(std::move(made.record)));
}

nb::tuple gradients(nb::handle grad_output, nb::handle output, nb::handle features,
                    nb::handle other, Chain& chain, nb::handle maps_given,
                    nb::handle parameters_given, nb::handle layouts, nb::handle token,
                    bool deterministic, bool tf32, bool of_features, bool of_other) {
  const std::shared_ptr<const nn::ChainRecord> record = record_of(token);
  const std::vector<KernelMapView> maps = maps_in(maps_given, chain.size());
  const Call call(grad_output, home_of(maps));
  const auto parameters = parameters_in(call, parameters_given, layouts, chain.size());
  const nn::ChainInput input = input_of(call, features, other, maps, {deterministic, tf32});
  const nn::ChainBackward backward{.grad_output = call.view(grad_output, "grad_output"),
                                   .output = call.view(output, "output"),
                                   .of_features = of_features,
                                   .of_other = of_other};
  FrameworkResults& results = call.results();
  const nn::ChainGradients made = call.run([&] {
    return chain.gradients(backward, input, parameters, *record,
                           {.features = results, .other = results, .parameters = results});
  });
  return handed_out(call, made, parameters_given);
}

/// Weights of layers in evaluation, and what they were made of: `parameters`, or `learned` where
/// these were turned before.
struct ChainWeights {
  ChainWeights(const Chain& chain, nb::handle like, nb::handle parameters, nb::handle layouts,
               nb::handle running, nb::handle learned)
      : made_of(learned.is_none() ? parameters : learned, running),
        weights(made(Call(like), chain, parameters, layouts, running)) {}

  static nn::ChainWeights made(const Call& call, const Chain& chain, nb::handle parameters,
                               nb::handle layouts, nb::handle running) {
    return call.run([&, learned = parameters_in(call, parameters, layouts, chain.size()),
                     kept = running_in(call, running, chain.size())] {
      return nn::ChainWeights(chain, learned, kept);
    });
  }
  bool is_of(nb::handle parameters, nb::handle running) const {
    return made_of == MadeOf(parameters, running);
  }

  MadeOf made_of;
  nn::ChainWeights weights;
};

nb::object infer(nb::handle features, nb::handle other, Chain& chain, nb::handle maps_given,
                 ChainWeights& weights, const Numerics& numerics) {
  const std::vector<KernelMapView> maps = maps_in(maps_given, chain.size());
  const Call call(features, home_of(maps));
  const nn::ChainInput input = input_of(call, features, other, maps, numerics);
  const InferenceMemory memory(!records_gradients());
  return call.give(call.run([&] { return chain.infer(input, weights.weights, call.results()); }));
}

}   // namespace

nb::object infer_once(const ChainCall& given, nb::handle layouts) {
  if (!types_fit(given.features, given.other, given.parameters, given.running, given.rounds))
    return nb::none();
  const std::vector<KernelMapView> maps = maps_in(given.maps, given.chain.size());
  const Call call(given.features, home_of(maps));
  const nn::ChainInput input = input_of(call, given.features, given.other, maps, given.numerics);
  const auto learned = parameters_in(call, given.parameters, layouts, given.chain.size());
  const auto kept = running_in(call, given.running, given.chain.size());
  const InferenceMemory memory(!records_gradients());
  return call.give(call.run([&] {
    nn::ChainWeights weights(given.chain, learned, kept);
    return given.chain.infer(input, weights, call.results());
  }));
}

nb::object infer_kept(const ChainCall& given, nb::handle weights) {
  auto& kept = nb::cast<ChainWeights&>(weights);
  if (!kept.is_of(given.parameters, given.running) ||
      !types_fit(given.features, given.other, given.parameters, given.running, given.rounds))
    return nb::none();
  return infer(given.features, given.other, given.chain, given.maps, kept, given.numerics);
}

void bind_chain(nb::module_& module) {
  nb::class_<Chain>(module, "Chain", "Which values the links of a chain take.")
      .def(
          "__init__",
          [](Chain* self, const std::vector<Link>& links, nb::handle plans) {
            new (self) Chain(links_of(links, plans));
          },
          "links"_a, "plans"_a = nb::none());
  nb::class_<ChainWeights>(module, "ChainWeights", "Folded and packed, for inference.")
      .def(nb::init<const Chain&, nb::handle, nb::handle, nb::handle, nb::handle, nb::handle>(),
           "chain"_a, "like"_a, "parameters"_a, "layouts"_a, "running"_a, "learned"_a = nb::none())
      .def("is_of", &ChainWeights::is_of, "parameters"_a, "running"_a,
           "Whether they were made of these tensors, and nobody has written into them since. The "
           "caller keeps alive what they were made of.");
  define(module, "types_fit", &types_fit, "features"_a, "other"_a.none(), "parameters"_a,
         "running"_a, "rounds"_a, "Whether kernels take these types, for a chain.");
  define(module, "chain_training", &train, "features"_a, "other"_a.none(), "chain"_a, "maps"_a,
         "parameters"_a, "layouts"_a, "running"_a, "deterministic"_a, "tf32"_a, "of_features"_a,
         "of_other"_a,
         "(output, token of what the backward pass needs). The running statistics move. "
         "`of_features`, "
         "`of_other`: which gradients the backward pass will be asked for.");
  define(
      module, "chain_gradients", &gradients, "grad_output"_a, "output"_a.none(), "features"_a,
      "other"_a.none(), "chain"_a, "maps"_a, "parameters"_a, "layouts"_a, "token"_a,
      "deterministic"_a, "tf32"_a, "of_features"_a, "of_other"_a,
      "(of the features, of the other, of each parameter), None where not wanted. `output`: where "
      "the last link has a ReLU.");
  define(
      module, "chain_inference",
      +[](nb::handle features, nb::handle other, Chain& chain, nb::handle maps,
          ChainWeights& weights, bool deterministic, bool tf32) {
        return infer(features, other, chain, maps, weights, {deterministic, tf32});
      },
      "features"_a, "other"_a.none(), "chain"_a, "maps"_a, "weights"_a, "deterministic"_a,
      "tf32"_a);
}

}   // namespace pumice::python
