// What the passes of a chain share: values by their numbers, and what they are told.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include <pumice/nn/chain.hpp>
#include <pumice/ops/convolution.hpp>

namespace pumice::nn {

struct ChainRecord {
  struct Link {
    Tensor convolved;
    Normalized normalized;
  };
  std::vector<Link> links;
  Tensor turned;   // weights, see Learned
};

inline ConvolutionOptions options_of(const ChainInput& input) {
  return {.numerics = input.numerics, .rounds_weight = true};
}

inline bool is_on_device(const ChainInput& input) {
  return input.features.device().kind == DeviceKind::cuda;
}

/// Whether the gradient of a value will be wanted.
inline bool learns(const ChainInput& input, std::size_t value) {
  return value == 0 ? input.features_learn : value != 1 || input.other_learns;
}

/// Of a link's weight, packed for one pass; null on the CPU, where there are none.
inline PackedWeights* at(std::vector<PackedWeights>& packed, std::size_t link) {
  return packed.empty() ? nullptr : &packed[link];
}

/// Numbers that links take: what was given, and what they made.
class Values {
 public:
  Values(const ChainInput& input, std::size_t links)
      : made_(links), given_{input.features, input.other} {}

  ConstTensorView operator[](std::size_t value) const {
    return value < kChainGiven ? given_[value] : made_[value - kChainGiven].view();
  }
  ConstTensorView residual_of(const ChainLink& link) const {
    return link.residual ? (*this)[*link.residual] : ConstTensorView{};
  }
  void set(std::size_t link, Tensor made) { made_[link] = std::move(made); }
  void drop(std::size_t value) {
    if (value >= kChainGiven) made_[value - kChainGiven] = {};
  }

 private:
  std::vector<Tensor> made_;
  ConstTensorView given_[kChainGiven];
};

}   // namespace pumice::nn
