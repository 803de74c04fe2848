// Convolutions, each with its batch norm, a residual and a ReLU, one after the other: stages of
// networks as one call forward and one backward, on tensors, whoever holds the parameters.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pumice/core/numerics.hpp>
#include <pumice/core/results.hpp>
#include <pumice/kernels/packed_weights.hpp>
#include <pumice/maps/kernel_map.hpp>
#include <pumice/nn/weight_layout.hpp>
#include <pumice/ops/folded_norm.hpp>
#include <pumice/plan/layer_plans.hpp>

namespace pumice::nn {

/// Values 0 and 1 are what a chain is given; value 2 + i is what link i makes.
inline constexpr std::size_t kChainGiven = 2;

/// relu(norm(convolution(value `input`)) + value `residual`)
struct ChainLink {
  std::size_t input = 0;
  /// Whose channels come behind those of `input`, on the same rows, as if both had been
  /// concatenated.
  std::optional<std::size_t> second{};
  std::optional<std::size_t> residual{};
  bool relu = false;
  double epsilon = kNormEpsilon;
  double momentum = 0.1;
  /// Of its convolution; UserError in the pass that runs one which does not fit.
  LayerPlans plans{};
};

/// What a link learns.
struct LinkParameters {
  ConstTensorView weight;                 // [K, C_in, C_out], or as `layout` has it
  ConstTensorView scale;                  // [C_out], of the norm
  ConstTensorView shift;                  // [C_out]
  const WeightLayout* layout = nullptr;   // null: the weight lies as kernels take it
};
inline constexpr std::size_t kLinkParameters = 3;

/// What its norm keeps: all [C_out], and how many batches there were, i64 [1].
struct RunningStatistics {
  TensorView mean;
  TensorView variance;
  TensorView batches{};   // undefined: nobody counts
};

/// What a chain runs on.
struct ChainInput {
  ConstTensorView features;              // value 0
  ConstTensorView other{};               // value 1; undefined where no link takes it
  std::span<const KernelMapView> maps;   // of each link; all belong to the features' stream
  /// Of training: whether the gradients of features and other will be wanted. What those run on is
  /// made with the rest then, and later where this says otherwise.
  bool features_learn = true;
  bool other_learns = true;
  Numerics numerics{};
};

/// What a backward pass needs of its forward pass, without the last output: who keeps that anyway
/// (autograd) would else hold itself.
struct ChainRecord;

struct ChainTrained {
  Tensor output;
  std::shared_ptr<const ChainRecord> record;
};

/// What a backward pass starts from.
struct ChainBackward {
  ConstTensorView grad_output;
  ConstTensorView
      output{};              // that the forward pass returned; undefined where it ends without ReLU
  bool of_features = true;   // which gradients are wanted beside those of the parameters
  bool of_other = false;
};

struct ChainGradients {
  Tensor features{};   // undefined where not wanted
  Tensor other{};
  std::vector<Tensor>
      parameters{};   // of weight, scale, shift of each link, in the parameters' shapes

  /// Parameters whose gradients lie one after the other in one tensor, `memory`, and are parts of
  /// it.
  struct Piece {
    Tensor memory;
    std::vector<std::size_t> members;   // indices of `parameters`
  };
  std::vector<Piece> pieces{};
};
struct ChainGradientPlaces {
  Place features{};
  Place other{};
  Place parameters{};   // of each piece, and of what lies in none
};

class ChainWeights;
struct ChainStructure;

/// What its links are. On a device what their plans run on (cuts of maps, weights as kernels read
/// them) is made at once, before the first of them runs. Threads may share one.
class Chain {
 public:
  /// UserError for a link that takes what is not made before it, and for one that nobody takes.
  explicit Chain(std::vector<ChainLink> links);

  std::size_t size() const { return links_.size(); }
  const std::vector<ChainLink>& links() const { return links_; }

  /// Norms by the numbers of the batch; the running statistics move. Types are those that
  /// `convolution` and `batch_norm_training` take; UserError as they raise it. On a device, where
  /// kernels read several inputs, a second value is read where it lies; the record has none of two
  /// side by side.
  ChainTrained train(const ChainInput& input, std::span<const LinkParameters> parameters,
                     std::span<const RunningStatistics> running, const Place& place = {}) const;
  /// Gradients of `train`: its input and its parameters, as they were then, and its record. Those
  /// of all parameters lie in one tensor for each type, but for what does not fill units of 16
  /// bytes; weights in half precision have sums in f32, rounded at the end. Two values side by side
  /// are brought together for the gradients of the weights that take them.
  ChainGradients gradients(const ChainBackward& backward, const ChainInput& input,
                           std::span<const LinkParameters> parameters, const ChainRecord& record,
                           const ChainGradientPlaces& places = {}) const;
  /// Norms by their running statistics, folded into the convolutions.
  /// On a device, where kernels read several inputs, a second value is read where it lies, and a
  /// link of one offset that is added to another one, without a ReLU or a plan of its own, runs in
  /// that one's kernel.
  Tensor infer(const ChainInput& input, ChainWeights& weights, const Place& place = {}) const;

  // For the passes.
  const ChainStructure& structure() const { return *structure_; }

 private:
  void check(const ChainInput& input) const;

  std::vector<ChainLink> links_;
  std::shared_ptr<const ChainStructure> structure_;
};

/// Weights for `Chain::infer`: norms folded, and what kernels read packed in the first pass. They
/// look at the weights, which the caller keeps as they are, or makes another one after a change.
class ChainWeights {
 public:
  ChainWeights(const Chain& chain, std::span<const LinkParameters> parameters,
               std::span<const RunningStatistics> running);
  ChainWeights(ChainWeights&&) noexcept = default;
  ChainWeights& operator=(ChainWeights&&) noexcept = default;

 private:
  friend class Chain;

  void add_shifts_of_shortcuts(const ChainStructure& structure, std::vector<SettledNorm>& norms);
  ScaleShifts::Views folded(std::size_t link, bool beside_shortcut = false) const;

  std::vector<ConstTensorView> weights_;   // [K, C_in, C_out]
  std::vector<PackedWeights> packed_;      // on a device; on the CPU threads share these weights
  Tensor turned_;                          // those that lay in another layout
  ScaleShifts folded_;   // of each link, then those of links whose shifts hold a shortcut's
  std::vector<std::size_t> beside_shortcut_;   // of each link: which of those is its; 0: none
};

}   // namespace pumice::nn
