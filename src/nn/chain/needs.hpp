// What the links of a chain need on a device before they run, made together: cuts of their maps,
// and their weights in the form that kernels read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pumice/nn/chain.hpp>

#include "nn/chain/fusions.hpp"
#include "nn/chain/passes.hpp"
#include "ops/cuda/convolution_needs.hpp"

namespace pumice::nn {

/// Collects what plans say, link by link. On the CPU nothing is needed.
class ChainNeeds {
 public:
  /// `weights` [K, C_in, C_out], one of each link; all that is given outlives this.
  ChainNeeds(const Chain& chain, const ChainInput& input, std::span<const ConstTensorView> weights);

  /// `packed`: where the link's weight is kept in its form; null: not asked for yet.
  void forward(std::size_t link, PackedWeights* packed = nullptr);
  /// The same with all that runs in a link's kernel. `scales`: what is multiplied into the weights
  /// where a shortcut does, of the link and of the shortcut.
  struct Scales {
    ConstTensorView own;
    ConstTensorView shortcut;
  };
  void forward(std::size_t link, const Fusions& fusions, const Scales& scales,
               std::vector<PackedWeights>& packed);
  void input_gradient(std::size_t link, PackedWeights* packed = nullptr);
  void weight_gradient(std::size_t link);

  /// Enqueues what is not there yet, on the stream of the features.
  void make();

 private:
  struct Packing {
    PackedWeights* packed;
    ConstTensorView weight;
    cuda::PackUse use;
  };

  void add(const ConvolutionProblem& problem, const ConvolutionPlan* given,
           const KernelMapView& map, std::size_t link, PackedWeights* packed);
  const ChainLink& link_at(std::size_t link) const { return chain_.links()[link]; }
  /// What its convolution takes.
  ConstTensorView source(std::size_t link) const {
    return shapes_[chain_.structure().sources[link]];
  }
  ConstTensorView made_by(std::size_t link) const { return shapes_[kChainGiven + link]; }

  const Chain& chain_;
  const ChainInput& input_;
  std::span<const ConstTensorView> weights_;
  ValueShapes shapes_;
  bool on_device_;
  std::vector<cuda::CutWanted> cuts_;
  std::vector<Packing> packings_;
};

}   // namespace pumice::nn
