// What the passes of a chain share: values by their numbers, and what they are told.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <pumice/nn/chain.hpp>
#include <pumice/ops/convolution.hpp>

#include "nn/chain/structure.hpp"

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

/// Whether that of what a link's convolution takes will be.
inline bool source_learns(const ChainInput& input, const ChainLink& link) {
  return learns(input, link.input) || (link.second && learns(input, *link.second));
}

/// Of a link's weight, packed for one pass; null on the CPU, where there are none.
inline PackedWeights* at(std::vector<PackedWeights>& packed, std::size_t link) {
  return packed.empty() ? nullptr : &packed[link];
}

/// Numbers that links take: what was given, what they made, and joins.
class Values {
 public:
  Values(const ChainStructure& structure, const ChainInput& input)
      : structure_(structure),
        made_(structure.values() - kChainGiven),
        given_{input.features, input.other} {}

  ConstTensorView operator[](std::size_t value) const {
    return value < kChainGiven ? given_[value] : made_[value - kChainGiven].view();
  }
  ConstTensorView residual_of(const ChainLink& link) const {
    return link.residual ? (*this)[*link.residual] : ConstTensorView{};
  }
  void set(std::size_t link, Tensor made) { made_[link] = std::move(made); }
  /// Makes the join that is the source of a link, if it is one that is not there yet.
  void join_for(std::size_t link, const KernelMapView& map);
  void drop(std::size_t value) {
    if (value >= kChainGiven) made_[value - kChainGiven] = {};
  }

 private:
  const ChainStructure& structure_;
  std::vector<Tensor> made_;
  ConstTensorView given_[kChainGiven];
};

/// Values without data, of which plans do not depend.
class ValueShapes {
 public:
  /// `weights` [K, C_in, C_out], one of each link; all that is given outlives this.
  ValueShapes(const ChainStructure& structure, const ChainInput& input,
              std::span<const ConstTensorView> weights)
      : structure_(structure), input_(input), weights_(weights) {}

  ConstTensorView operator[](std::size_t value) const;

 private:
  const ChainStructure& structure_;
  const ChainInput& input_;
  std::span<const ConstTensorView> weights_;
};

}   // namespace pumice::nn
