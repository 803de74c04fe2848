// A chain in evaluation: each link is one convolution, whose epilogue holds all else.
#include <pumice/core/error.hpp>

#include "nn/chain/learned.hpp"
#include "nn/chain/link_weight.hpp"
#include "nn/chain/needs.hpp"
#include "nn/chain/passes.hpp"

namespace pumice::nn {

ChainWeights::ChainWeights(const Chain& chain, std::span<const LinkParameters> parameters,
                           std::span<const RunningStatistics> running) {
  PUMICE_EXPECTS(running.size() == chain.size(), running.size(),
                 " running statistics for a chain of ", chain.size(), " links: give those of each");
  Learned learned(parameters, chain.size());
  turned_ = learned.turn();
  weights_.assign(learned.weights().begin(), learned.weights().end());
  if (weights_.front().device().kind == DeviceKind::cuda)
    packed_ = std::vector<PackedWeights>(chain.size());
  std::vector<SettledNorm> norms;
  norms.reserve(chain.size());
  for (std::size_t i = 0; i < chain.size(); ++i)
    norms.push_back({.mean = running[i].mean,
                     .variance = running[i].variance,
                     .weight = learned.scale(i),
                     .bias = learned.shift(i),
                     .epsilon = chain.links()[i].epsilon});
  folded_ = fold_batch_norms(norms);
}

Tensor Chain::infer(const ChainInput& input, ChainWeights& weights, const Place& place) const {
  check(input);
  PUMICE_EXPECTS(weights.weights_.size() == size(), "weights of ", weights.weights_.size(),
                 " links for a chain of ", size(), ": give those that were made for it");
  ChainNeeds needs(links_, input, weights.weights_);
  for (std::size_t i = 0; i < size(); ++i)
    needs.forward(i, at(weights.packed_, i));
  needs.make();
  Values values(input, size());
  ConvolutionOptions options = options_of(input);
  Tensor output;
  for (std::size_t i = 0; i < size(); ++i) {
    const ChainLink& link = links_[i];
    const ScaleShifts::Views& folded = weights.folded_.of_norm[i];
    options.epilogue = {.scale = folded.scale,
                        .shift = folded.shift,
                        .residual = values.residual_of(link),
                        .activation = link.relu ? Activation::relu : Activation::none};
    options.plan = link.plans.forward.get();
    const ConstTensorView x = values[link.input];
    const LinkWeight weight(weights.weights_[i], options.plan, x.dtype(), at(weights.packed_, i));
    options.kept = weight.packed();
    output =
        convolution(x, weight.view(), input.maps[i], options, i + 1 == size() ? place : Place());
    values.set(i, output);
    for (const std::size_t value : {link.input, link.residual.value_or(link.input)}) {
      if (last_use_[value] == i) values.drop(value);
    }
  }
  return output;
}

}   // namespace pumice::nn
