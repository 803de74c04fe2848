// A chain's forward pass in training.
#include <utility>

#include <pumice/core/error.hpp>

#include "nn/chain/fusions.hpp"
#include "nn/chain/learned.hpp"
#include "nn/chain/link_weight.hpp"
#include "nn/chain/needs.hpp"
#include "nn/chain/passes.hpp"

namespace pumice::nn {

ChainTrained Chain::train(const ChainInput& input, std::span<const LinkParameters> parameters,
                          std::span<const RunningStatistics> running, const Place& place) const {
  check(input);
  PUMICE_EXPECTS(running.size() == size(), running.size(), " running statistics for a chain of ",
                 size(), " links: give those of each");
  Learned learned(parameters, size());
  auto record = std::make_shared<ChainRecord>();
  record->turned = learned.turn();
  record->links.reserve(size());
  std::vector<PackedWeights> packed(is_on_device(input) ? size() : 0);
  ChainNeeds needs(*this, input, learned.weights());
  const Fusions fusions(*this, input, learned.weights(), Shortcuts::by_themselves);
  for (std::size_t i = 0; i < size(); ++i) {
    needs.forward(i, fusions, {}, packed);
    needs.weight_gradient(i);
    if (source_learns(input, links_[i])) needs.input_gradient(i);
  }
  needs.make();
  Values values(*structure_, input);
  ConvolutionOptions options = options_of(input);
  for (std::size_t i = 0; i < size(); ++i) {
    const ChainLink& link = links_[i];
    if (!fusions.is_apart(structure_->sources[i])) values.join_for(i, input.maps[i]);
    fusions.set_inputs(options, i, {}, values);
    const ConstTensorView x = fusions.features_of(i, values);
    options.plan = link.plans.forward.get();
    const LinkWeight weight(learned.weight(i), options.plan, x.dtype(), at(packed, i));
    options.kept = weight.packed();
    Tensor convolved = convolution(x, weight.view(), input.maps[i], options);
    Normalized normalized = batch_norm_training(
        convolved, learned.scale(i), learned.shift(i), running[i].mean, running[i].variance,
        {.epsilon = link.epsilon,
         .momentum = link.momentum,
         .batches = running[i].batches,
         .rows = out_row_count(input.maps[i])},
        {.residual = values.residual_of(link), .relu = link.relu},
        {.output = i + 1 == size() ? place : Place()});
    values.set(i, normalized.output);
    record->links.push_back({std::move(convolved), std::move(normalized)});
    // Where it had to be made: the pass back makes it again, from parts that are kept anyway.
    const std::size_t source = structure_->sources[i];
    if (structure_->is_join(source) && structure_->last_use[source] == i) values.drop(source);
  }
  return {std::exchange(record->links.back().normalized.output, {}), std::move(record)};
}

}   // namespace pumice::nn
