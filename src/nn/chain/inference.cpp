// A chain in evaluation: each link is one convolution, whose epilogue holds all else, or a part of
// another one.
#include <pumice/core/error.hpp>

#include "nn/chain/fusions.hpp"
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
  norms.reserve(2 * chain.size());   // shortcuts are looked at where they lie
  for (std::size_t i = 0; i < chain.size(); ++i)
    norms.push_back({.mean = running[i].mean,
                     .variance = running[i].variance,
                     .weight = learned.scale(i),
                     .bias = learned.shift(i),
                     .epsilon = chain.links()[i].epsilon});
  add_shifts_of_shortcuts(chain.structure(), norms);
  folded_ = fold_batch_norms(norms);
}

void ChainWeights::add_shifts_of_shortcuts(const ChainStructure& structure,
                                           std::vector<SettledNorm>& norms) {
  beside_shortcut_.assign(structure.links, 0);
  if (packed_.empty()) return;   // the CPU runs link by link
  for (std::size_t i = 0; i < structure.links; ++i) {
    const std::optional<std::size_t>& shortcut = structure.shortcuts[i];
    if (!shortcut || !Fusions::fits_together(weights_, i, *shortcut)) continue;
    beside_shortcut_[i] = norms.size();
    SettledNorm both = norms[i];
    both.shortcut = &norms[*shortcut];
    norms.push_back(both);
  }
}

ScaleShifts::Views ChainWeights::folded(std::size_t link, bool beside_shortcut) const {
  return folded_.of_norm[beside_shortcut ? beside_shortcut_[link] : link];
}

Tensor Chain::infer(const ChainInput& input, ChainWeights& weights, const Place& place) const {
  check(input);
  PUMICE_EXPECTS(weights.weights_.size() == size(), "weights of ", weights.weights_.size(),
                 " links for a chain of ", size(), ": give those that were made for it");
  const Fusions fusions(*this, input, weights.weights_, Shortcuts::in_links_that_add_them);
  ChainNeeds needs(*this, input, weights.weights_);
  for (std::size_t i = 0; i < size(); ++i) {
    if (fusions.runs_in_another(i)) continue;
    const std::optional<std::size_t> shortcut = fusions.shortcut_of(i);
    needs.forward(i, fusions,
                  {.own = weights.folded(i, shortcut.has_value()).scale,
                   .shortcut = shortcut ? weights.folded(*shortcut).scale : ConstTensorView{}},
                  weights.packed_);
  }
  needs.make();
  Values values(*structure_, input);
  ConvolutionOptions options = options_of(input);
  Tensor output;
  for (std::size_t i = 0; i < size(); ++i) {
    if (fusions.runs_in_another(i)) continue;
    const ChainLink& link = links_[i];
    const std::optional<std::size_t> shortcut = fusions.shortcut_of(i);
    const auto bring_together = [&](std::size_t of) {
      if (!fusions.is_apart(structure_->sources[of])) values.join_for(of, input.maps[of]);
    };
    bring_together(i);
    const ScaleShifts::Views folded = weights.folded(i, shortcut.has_value());
    options.epilogue = {.scale = folded.scale,
                        .shift = folded.shift,
                        .activation = link.relu ? Activation::relu : Activation::none};
    if (shortcut) bring_together(*shortcut);
    fusions.set_inputs(options, i, shortcut, values);
    if (shortcut) {
      options.shortcut.weight = weights.weights_[*shortcut];
      options.shortcut.scale = weights.folded(*shortcut).scale;
      options.shortcut.kept = at(weights.packed_, *shortcut);
    } else {
      options.epilogue.residual = values.residual_of(link);
    }
    options.plan = link.plans.forward.get();
    const ConstTensorView x = fusions.features_of(i, values);
    const LinkWeight weight(weights.weights_[i], options.plan, x.dtype(), at(weights.packed_, i));
    options.kept = weight.packed();
    output =
        convolution(x, weight.view(), input.maps[i], options, i + 1 == size() ? place : Place());
    values.set(i, output);
    const auto drop = [&](std::size_t value) {
      if (fusions.last_use(value) == i) values.drop(value);
    };
    for_each_taken(*structure_, link, i, drop);
    if (shortcut) for_each_taken(*structure_, links_[*shortcut], *shortcut, drop);
  }
  return output;
}

}   // namespace pumice::nn
