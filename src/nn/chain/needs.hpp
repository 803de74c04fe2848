// What the links of a chain need on a device before they run, made together: cuts of their maps,
// and their weights in the form that kernels read.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include <pumice/nn/chain.hpp>

#include "ops/cuda/convolution_needs.hpp"

namespace pumice::nn {

/// Collects what plans say, link by link. On the CPU nothing is needed.
class ChainNeeds {
 public:
  /// `weights` [K, C_in, C_out], one of each link; all that is given outlives this.
  ChainNeeds(const std::vector<ChainLink>& links, const ChainInput& input,
             std::span<const ConstTensorView> weights);

  /// `packed`: where the link's weight is kept in its form; null: not asked for yet.
  void forward(std::size_t link, PackedWeights* packed = nullptr);
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

  /// Without data, of which a plan does not depend.
  ConstTensorView value(std::size_t number) const;
  void add(const ConvolutionProblem& problem, const ConvolutionPlan* given,
           const KernelMapView& map, std::size_t link, PackedWeights* packed);

  const std::vector<ChainLink>& links_;
  const ChainInput& input_;
  std::span<const ConstTensorView> weights_;
  bool on_device_;
  std::vector<cuda::CutWanted> cuts_;
  std::vector<Packing> packings_;
};

}   // namespace pumice::nn
