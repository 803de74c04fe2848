// What the passes of a chain share: values by their numbers, and weights packed for one pass.
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
  return {.deterministic = input.deterministic, .tf32 = input.tf32, .rounds_weight = true};
}

inline bool is_on_device(const ChainInput& input) {
  return input.features.device().kind == DeviceKind::cuda;
}

std::vector<const KernelMap*> kernel_maps(const ChainInput& input);

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

/// The weights of all links in the forms that the kernels of a device read, packed at once where an
/// earlier pass tells in which.
class PackedLinks {
 public:
  PackedLinks(TileWeightUses& uses, std::span<const ConstTensorView> weights, bool on_device,
              StreamView stream);

  /// Null on the CPU.
  TileWeights* of(std::size_t link) { return packed_.empty() ? nullptr : &packed_[link]; }
  /// Remembers what the pass asked for.
  void learn();

 private:
  TileWeightUses& uses_;
  std::vector<TileWeights> packed_;
};

std::vector<TileWeights*> pointers_to(std::vector<TileWeights>& packed);

}   // namespace pumice::nn
