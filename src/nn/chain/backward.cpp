// A chain's way back: norms and convolutions in the reverse order of the links.
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/ops/elementwise.hpp>

#include "nn/chain/learned.hpp"
#include "nn/chain/link_weight.hpp"
#include "nn/chain/needs.hpp"
#include "nn/chain/parameter_gradients.hpp"
#include "nn/chain/passes.hpp"
#include "ops/convolution_steps.hpp"

namespace pumice::nn {
namespace {

/// Gradients of values, which add up where several links take the same one.
class ValueGradients {
 public:
  ValueGradients(const ChainBackward& backward, const ChainStructure& structure,
                 const ChainGradientPlaces& places)
      : structure_(structure),
        of_last_(backward.grad_output),
        found_(structure.values()),
        wanted_{backward.of_features, backward.of_other},
        places_{&places.features, &places.other} {}

  bool wanted(std::size_t value) const {
    if (!structure_.is_join(value)) return value >= kChainGiven || wanted_[value];
    const ChainStructure::Join& join = structure_.join_at(value);
    return wanted(join.left) || wanted(join.right);
  }
  ConstTensorView of(std::size_t value) const {
    return value + 1 == kChainGiven + structure_.links ? of_last_ : found_[value].view();
  }
  bool is_there(std::size_t value) const { return found_[value].defined(); }
  /// Where the gradient goes; `is_last`: nothing will be added to it.
  Place place_of(std::size_t value, bool is_last) const {
    return value < kChainGiven && is_last ? *places_[value] : Place();
  }
  /// Of what is made to be added: where it goes if it is the first, else nowhere special.
  Place place_of_term(std::size_t value, bool is_last) const {
    return is_there(value) ? Place() : place_of(value, is_last);
  }
  void set(std::size_t value, Tensor gradient) { found_[value] = std::move(gradient); }
  void add(std::size_t value, Tensor gradient, const Place& place) {
    Tensor& found = found_[value];
    found = found.defined() ? pumice::add(found, gradient, place) : std::move(gradient);
  }
  void drop(std::size_t value) { found_[value] = {}; }
  Tensor take(std::size_t value) { return std::move(found_[value]); }

 private:
  const ChainStructure& structure_;
  ConstTensorView of_last_;
  std::vector<Tensor> found_;
  bool wanted_[kChainGiven];
  const Place* places_[kChainGiven];
};

/// One pass, link by link.
struct Pass {
  const ChainStructure& structure;
  const ChainBackward& backward;
  const ChainInput& input;
  const ChainGradientPlaces& places;
  const Learned& learned;
  const ChainRecord& record;
  Values values;
  ValueGradients found;
  ParameterGradients rooms;
  ChainGradients result;

  Place room_or(std::size_t link, std::size_t parameter, bool is_zeroed) const {
    const Tensor& room = rooms.of(link, parameter);
    if (!room.defined()) return places.parameters;
    return is_zeroed ? Place::zeroed(room) : Place(room);
  }
  void keep(std::size_t link, std::size_t parameter, Tensor gradient) {
    if (!rooms.of(link, parameter).defined())
      result.parameters[kLinkParameters * link + parameter] = std::move(gradient);
  }

  ConstTensorView output_of(std::size_t link) const {
    return link + 1 == record.links.size() ? backward.output : values[kChainGiven + link];
  }

  /// Back through ReLU, residual and norm; returns the gradient of what was convolved.
  /// `ends_there`: nothing else reaches the residual afterwards.
  Tensor through_norm(std::size_t i, const ChainLink& link, bool ends_there);
  /// The gradient of what the convolution took.
  void through_convolution(std::size_t i, const ChainLink& link, const Tensor& of_convolved,
                           PackedWeights* packed, bool ends_there);
  void through_weight(std::size_t i, const ChainLink& link, const Tensor& of_convolved);
  /// The gradient of a join, once it is whole, to its parts.
  void through_join(std::size_t i, std::size_t join);
};

Tensor Pass::through_norm(std::size_t i, const ChainLink& link, bool ends_there) {
  const ChainRecord::Link& made = record.links[i];
  const bool passes = link.residual && found.wanted(*link.residual);
  const Place of_residual = passes ? found.place_of(*link.residual, ends_there) : Place();
  NormGradients of_norm = batch_norm_training_gradient(
      made.convolved, found.of(kChainGiven + i), learned.scale(i), made.normalized.mean,
      made.normalized.inverse_deviation,
      {.output = link.relu ? output_of(i) : ConstTensorView{},
       .residual = passes,
       .rows = out_row_count(input.maps[i])},
      {.weight = room_or(i, 1, false),
       .bias = room_or(i, 2, false),
       .residual = passes ? found.place_of_term(*link.residual, ends_there) : Place()});
  found.drop(kChainGiven + i);
  keep(i, 1, std::move(of_norm.weight));
  keep(i, 2, std::move(of_norm.bias));
  if (passes) found.add(*link.residual, std::move(of_norm.residual), of_residual);
  return std::move(of_norm.features);
}

void Pass::through_convolution(std::size_t i, const ChainLink& link, const Tensor& of_convolved,
                               PackedWeights* packed, bool ends_there) {
  const std::size_t source = structure.sources[i];
  if (!found.wanted(source)) return;
  ConvolutionOptions options = options_of(input);
  options.epilogue.residual = found.of(source);   // what came on another way
  options.plan = link.plans.input_gradient.get();
  const LinkWeight weight(learned.weight(i), options.plan, of_convolved.dtype(), packed);
  options.kept = weight.packed();
  found.set(source, convolution_input_gradient(of_convolved, weight.view(), input.maps[i], options,
                                               found.place_of(source, ends_there)));
}

void Pass::through_join(std::size_t i, std::size_t join) {
  if (!found.wanted(join)) return;
  const auto [left, right] = structure.join_at(join);
  const Tensor whole = found.take(join);
  if (whole.device().kind == DeviceKind::cuda) close_tails(*in_sites(input.maps[i]), {whole});
  const auto ends_there = [&](std::size_t value) { return structure.first_use[value] == i; };
  const bool left_ends = ends_there(left) && left != right;
  const std::int64_t channels[] = {values[left].extent(1), values[right].extent(1)};
  const Place at_parts[] = {
      found.place_of_term(left, left_ends),
      left == right ? Place() : found.place_of_term(right, ends_there(right))};
  std::vector<Tensor> parts = split(whole, channels, at_parts);
  if (found.wanted(left)) found.add(left, std::move(parts[0]), found.place_of(left, left_ends));
  if (found.wanted(right))
    found.add(right, std::move(parts[1]), found.place_of(right, ends_there(right)));
}

void Pass::through_weight(std::size_t i, const ChainLink& link, const Tensor& of_convolved) {
  values.join_for(i, input.maps[i]);
  ConvolutionOptions options = options_of(input);
  options.plan = link.plans.weight_gradient.get();
  const bool has_room = rooms.of(i, 0).defined();
  options.wide_weight_gradient = has_room || learned.weight(i).dtype() == DType::f32;
  const bool goes_back = !has_room && learned.has_layout(i);
  Tensor gradient =
      convolution_weight_gradient(values[structure.sources[i]], of_convolved, input.maps[i],
                                  options, goes_back ? Place() : room_or(i, 0, true));
  if (goes_back) gradient = learned.given_back(i, gradient, places.parameters);
  keep(i, 0, std::move(gradient));
}

}   // namespace

ChainGradients Chain::gradients(const ChainBackward& backward, const ChainInput& input,
                                std::span<const LinkParameters> parameters,
                                const ChainRecord& record,
                                const ChainGradientPlaces& places) const {
  check(input);
  PUMICE_EXPECTS(record.links.size() == size(), "a record of ", record.links.size(),
                 " links for a chain of ", size(), ": give what its forward pass returned");
  PUMICE_EXPECTS(!links_.back().relu || backward.output.defined(),
                 "output is undefined, and the chain ends with a ReLU: give what train returned");
  Learned learned(parameters, size());
  learned.look_at(record.turned);
  const StreamView stream = input.features.stream();
  std::vector<PackedWeights> packed(is_on_device(input) ? size() : 0);
  Pass pass{.structure = *structure_,
            .backward = backward,
            .input = input,
            .places = places,
            .learned = learned,
            .record = record,
            .values = Values(*structure_, input),
            .found = ValueGradients(backward, *structure_, places),
            .rooms = ParameterGradients(learned, stream, places.parameters),
            .result = {}};
  pass.result.parameters.resize(kLinkParameters * size());
  for (std::size_t i = 0; i < size(); ++i)
    pass.values.set(i, record.links[i].normalized.output);
  ChainNeeds needs(*this, input, learned.weights());
  for (std::size_t i = 0; i < size(); ++i) {   // train had pairs cut for the gradients of weights
    if (pass.found.wanted(structure_->sources[i])) needs.input_gradient(i, at(packed, i));
  }
  needs.make();
  for (std::size_t i = size(); i-- > 0;) {
    const ChainLink& link = links_[i];
    const std::size_t source = structure_->sources[i];
    const auto begins_at = [&](std::size_t value) { return structure_->first_use[value] == i; };
    const bool is_convolved =
        link.residual && (*link.residual == link.input || link.residual == link.second);
    const Tensor of_convolved =
        pass.through_norm(i, link, link.residual && !is_convolved && begins_at(*link.residual));
    const bool join_ends = structure_->is_join(source) && begins_at(source);
    pass.through_weight(i, link, of_convolved);
    if (join_ends) pass.values.drop(source);   // before its gradient is made, which is as large
    pass.through_convolution(i, link, of_convolved, at(packed, i), begins_at(source));
    if (join_ends) pass.through_join(i, source);
  }
  pass.rooms.finish(pass.result);
  pass.result.features = pass.found.take(0);
  pass.result.other = pass.found.take(1);
  return std::move(pass.result);
}

}   // namespace pumice::nn
