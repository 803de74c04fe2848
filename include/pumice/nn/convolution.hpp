// Sparse convolution layers of every kind.
#pragma once

#include <utility>

#include <pumice/formats/pass_memory.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/kernels/tile_mma.hpp>
#include <pumice/nn/normalization.hpp>
#include <pumice/plan/layer_plans.hpp>

namespace pumice::nn {

enum class ConvolutionMode : unsigned char {
  submanifold,   // outputs are the inputs
  strided,       // makes its own, coarser outputs
  transposed,    // onto given finer sites
  inverse,       // back to the sites a strided convolution came from, through that one's map
  generative,    // onto every finer site it reaches
};

struct ConvolutionSpec {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  KernelWindow window{};
  ConvolutionMode mode = ConvolutionMode::submanifold;
  StridedOutputs outputs = StridedOutputs::dilating;   // of strided and inverse
  std::int64_t groups = 1;
  bool bias = false;
};

class Convolution;

/// What runs in the same call as a convolution.
struct Fused {
  Tensor second{};   // further channels of the input's rows, undefined: none
  const BatchNorm* norm = nullptr;
  Activation activation = Activation::none;
  double slope = 0.01;
  Tensor residual{};   // [out rows, C_out], undefined: none
  /// A convolution of 1×1×1 whose outputs are added before the activation.
  Convolution* shortcut = nullptr;
  const BatchNorm* shortcut_norm = nullptr;
  Tensor shortcut_features{};
  Tensor shortcut_second{};
};

/// Weight [K, C_in / groups, C_out], offsets in lexicographic order; a 1×1×1 kernel has K = 1.
class Convolution final : public Module {
 public:
  explicit Convolution(const ConvolutionSpec& spec);

  /// Submanifold, strided, generative, and inverse where a strided map of this window led to x.
  SparseTensor forward(SparseTensor x, Context& context) override;
  /// Onto given sites: transposed (any sites), inverse (those a strided convolution of this window
  /// started from). The map of such a convolution is found in the tensor's cache, not built again.
  SparseTensor forward(SparseTensor x, const CoordinateSetPtr& sites, Context& context);
  /// With what is fused with it, in one call. Nothing can be recorded.
  SparseTensor forward(SparseTensor x, const Fused& fused, Context& context);

  /// How to run it, its gradients too, from the next call on. UserError in the call where a plan
  /// does not fit, and where the context names a dataflow beside it.
  void set_plans(LayerPlans plans) { plans_ = std::move(plans); }
  const LayerPlans& plans() const { return plans_; }

  const ConvolutionSpec& spec() const { return spec_; }
  const ParameterPtr& weight() const { return weight_; }
  const ParameterPtr& bias() const { return bias_; }   // null without one
  /// "submanifold 3x3x3", "strided 2x2x2 /2"
  std::string kind() const;

 private:
  bool counts_as_layer() const override { return true; }
  /// A map, and from which side it is read.
  struct Way {
    KernelMapPtr map;
    bool is_transposed = false;

    KernelMapView view() const { return is_transposed ? transposed(map->view()) : map->view(); }
    const CoordinateSetPtr& out() const { return is_transposed ? map->in() : map->out(); }
  };
  Way find_way(const SparseTensor& x, const CoordinateSetPtr& sites) const;
  Way way_back(const SparseTensor& x, const CoordinateSetPtr& sites) const;
  SparseTensor run(SparseTensor x, const CoordinateSetPtr& sites, const Fused& fused,
                   Context& context);
  /// Where packed weights are kept; null while they change each step.
  PackedWeights* kept();
  /// What the epilogue applies for the bias and the norm behind; folded again when they change.
  ScaleShift affine(const BatchNorm* norm);
  /// The shift of the norm and that of a shortcut, added.
  Tensor joint_shift(const Fused& fused);

  ConvolutionSpec spec_;
  LayerPlans plans_{};
  PassMemory passes_{};   // that begin with this layer
  ParameterPtr weight_;
  ParameterPtr bias_;
  PackedWeights packed_{};
  std::uint64_t packed_version_ = 0;
  ScaleShift folded_affine_{};
  const BatchNorm* folded_norm_ = nullptr;
  std::uint64_t folded_version_ = ~std::uint64_t{0};
  std::uint64_t folds_ = 0;   // how often that was
  Tensor joint_shift_{};
  const Convolution* joint_shortcut_ = nullptr;
  std::uint64_t joint_version_ = 0;
};

/// A window centred on its output, for ConvolutionMode::submanifold.
ConvolutionSpec submanifold(std::int64_t in_channels, std::int64_t out_channels,
                            std::int32_t kernel = 3, int dimension = 3);

}   // namespace pumice::nn
