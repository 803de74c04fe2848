// Weights in their layouts, and turned to the one that kernels take.
#include "nn/chain/learned.hpp"

#include <pumice/core/error.hpp>

namespace pumice::nn {
namespace {

constexpr std::size_t kTogether = 16;   // bytes that kernels read at once

std::size_t aligned_bytes(ConstTensorView view) {
  const auto bytes = static_cast<std::size_t>(view.elements()) * size_of(view.dtype());
  return (bytes + kTogether - 1) / kTogether * kTogether;
}

}   // namespace

Learned::Learned(std::span<const LinkParameters> given, std::size_t links) : given_(given) {
  PUMICE_EXPECTS(given.size() == links, "parameters of ", given.size(), " links for a chain of ",
                 links, ": give those of each");
  weights_.reserve(links);
  for (const LinkParameters& link : given) {
    const ConstTensorView& weight = link.weight;
    const bool moves = link.layout != nullptr && link.layout->moves();
    moves_.push_back(moves ? 1 : 0);
    if (link.layout != nullptr) {
      PUMICE_EXPECTS(link.layout->shape.elements() == weight.elements(), "weight has shape ",
                     to_string(weight.shape()), ": the layer's is made of ",
                     to_string(link.layout->shape));
      weights_.emplace_back(moves ? nullptr : weight.raw(), weight.dtype(),
                            link.layout->weight_shape(), weight.stream());
    } else {
      weights_.push_back(weight);
    }
    if (moves) turned_bytes_ += aligned_bytes(weight);
    PUMICE_EXPECTS(weights_.back().rank() == 3, "weight has shape ", to_string(weight.shape()),
                   ": give [offsets, input channels, output channels]");
  }
}

const ConstTensorView& Learned::given(std::size_t link, std::size_t parameter) const {
  const LinkParameters& of_link = given_[link];
  return parameter == 0 ? of_link.weight : parameter == 1 ? of_link.scale : of_link.shift;
}

Tensor Learned::turn() {
  if (turned_bytes_ == 0) return {};
  Tensor turned(Shape({static_cast<std::int64_t>(turned_bytes_)}), DType::u8,
                weights_.front().stream());
  look_at(turned);
  std::vector<Permutation> copies;
  for (std::size_t i = 0; i < size(); ++i) {
    if (!moves(i)) continue;
    const ConstTensorView& from = given_[i].weight;
    const ConstTensorView& to = weights_[i];
    copies.push_back({{from.raw(), from.dtype(), given_[i].layout->shape, from.stream()},
                      given_[i].layout->order,
                      {const_cast<void*>(to.raw()), to.dtype(), to.shape(), to.stream()}});
  }
  permute(copies);
  return turned;
}

void Learned::look_at(const Tensor& turned) {
  PUMICE_ENSURES(turned_bytes_ == turned.bytes(), turned.bytes(), " bytes of turned weights, not ",
                 turned_bytes_);
  const auto* next = static_cast<const std::byte*>(turned.raw());
  for (std::size_t i = 0; i < size(); ++i) {
    if (!moves(i)) continue;
    ConstTensorView& weight = weights_[i];
    weight = {next, weight.dtype(), weight.shape(), weight.stream()};
    next += aligned_bytes(weight);
  }
}

Permutation Learned::back(std::size_t link, ConstTensorView gradient, TensorView to) const {
  Permutation copy{gradient, {0, 1, 2}, to};
  if (!has_layout(link)) return copy;
  const WeightLayout& layout = *given_[link].layout;
  std::vector<std::int64_t> extents;
  for (int axis = 0; axis < layout.shape.rank(); ++axis) {
    const int from = layout.order[static_cast<std::size_t>(axis)];
    extents.push_back(layout.shape[from]);
    copy.order[static_cast<std::size_t>(from)] = axis;
  }
  copy.from = {gradient.raw(), gradient.dtype(), Shape(extents), gradient.stream()};
  return copy;
}

Tensor Learned::given_back(std::size_t link, const Tensor& gradient, const Place& place) const {
  Tensor result = place.make(given_[link].weight.shape(), gradient.dtype(), gradient.stream());
  const Permutation copy = back(link, gradient.view(), result.view());
  permute({&copy, 1});
  return result;
}

}   // namespace pumice::nn
