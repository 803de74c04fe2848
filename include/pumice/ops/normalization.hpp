// Batch, layer and instance normalisation of rows, and their gradients.
//
// The compute type is f64 for f64 features and f32 for all others. Parameters, running statistics,
// saved statistics and the gradients of parameters are of the compute type; features, outputs and
// the gradient of the features are of the storage type. In batch norm's training and fold weight
// and bias, and the running statistics, may each be of the storage type as well: they are read and
// written where they are, computed with in the compute type and rounded once, and the parameters'
// gradients are of the parameters' type. Sums run in double over chunks that depend
// on the shape alone. On a device the passes over the rows are in float, by Welford's and Chan's
// recurrences, which subtract no large sums, and only what they leave is added in double; the bits
// depend on the shape and the device.
//
// `rows`: how many of the N rows are in use, null: all. The others are neither read nor written,
// and the bits do not depend on how many of them there are.
#pragma once

#include <cstdint>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/results.hpp>
#include <pumice/core/row_count.hpp>

namespace pumice {

inline constexpr double kNormEpsilon = 1e-5;

struct Normalized {
  Tensor output;              // [N, C]
  Tensor mean;                // what the gradient needs: [C] for batch, [N] for layer,
  Tensor inverse_deviation;   // [batch_size, C] for instance norm; 1 / sqrt(variance + epsilon)
};
struct NormalizedPlaces {
  Place output{};
  Place mean{};
  Place inverse_deviation{};
};

struct NormGradients {
  Tensor features;     // [N, C]
  Tensor weight;       // [C]
  Tensor bias;         // [C]
  Tensor residual{};   // [N, C], of a norm that is followed by one
};
struct NormGradientPlaces {
  Place features{};
  Place weight{};
  Place bias{};
  Place residual{};
};

/// What follows a norm in the same pass: relu(norm + residual).
struct AfterNorm {
  ConstTensorView residual{};   // [N, C], of the features' type; undefined: 0
  bool relu = false;
};

/// The same, for its gradient.
struct BeforeNormGradient {
  ConstTensorView output{};   // of the ReLU, which passes gradients where it is above 0; undefined:
                              // there was none
  bool residual = false;      // whether its gradient is wanted
  const RowCount* rows = nullptr;
};

struct BatchNormOptions {
  double epsilon = kNormEpsilon;
  double momentum = 0.1;   // running = (1 - momentum) · running + momentum · batch
  TensorView batches{};    // one i64, which goes up by 1 where N > 0; undefined: nobody counts
  const RowCount* rows = nullptr;
};

/// Normalises with the mean and the biased variance of the N rows, as PyTorch's BatchNorm1d in
/// training. weight and bias: [C]; undefined: 1 and 0. Where the running statistics ([C]) are
/// defined they move by `momentum`, the variance towards the unbiased one. N = 0 gives an empty
/// output and leaves them alone; N = 1 is a UserError, for one row has no variance: where only the
/// device knows it, the output is NaN, and the next call that waits for the stream raises the
/// error.
Normalized batch_norm_training(ConstTensorView features, ConstTensorView weight,
                               ConstTensorView bias, TensorView running_mean,
                               TensorView running_variance, const BatchNormOptions& options = {},
                               const AfterNorm& after = {}, const NormalizedPlaces& places = {});
/// Gradients of `batch_norm_training`; `mean` and `inverse_deviation` are the ones it returned.
NormGradients batch_norm_training_gradient(ConstTensorView features, ConstTensorView grad_output,
                                           ConstTensorView weight, ConstTensorView mean,
                                           ConstTensorView inverse_deviation,
                                           const BeforeNormGradient& before = {},
                                           const NormGradientPlaces& places = {});

/// (x - mean) / sqrt(variance + epsilon) · weight + bias with given statistics, all [C].
Tensor batch_norm_inference(ConstTensorView features, ConstTensorView mean,
                            ConstTensorView variance, ConstTensorView weight, ConstTensorView bias,
                            double epsilon = kNormEpsilon, const RowCount* rows = nullptr,
                            const Place& place = {});
/// Gradients with the statistics held constant.
NormGradients batch_norm_inference_gradient(ConstTensorView features, ConstTensorView grad_output,
                                            ConstTensorView mean, ConstTensorView variance,
                                            ConstTensorView weight, double epsilon = kNormEpsilon,
                                            const RowCount* rows = nullptr,
                                            const NormGradientPlaces& places = {});

/// Normalises every row over its C channels (biased variance).
Normalized layer_norm(ConstTensorView features, ConstTensorView weight, ConstTensorView bias,
                      double epsilon = kNormEpsilon, const RowCount* rows = nullptr,
                      const NormalizedPlaces& places = {});
NormGradients layer_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                                  ConstTensorView weight, ConstTensorView mean,
                                  ConstTensorView inverse_deviation, const RowCount* rows = nullptr,
                                  const NormGradientPlaces& places = {});

/// Normalises every channel over the rows of each batch item (biased variance). Items without rows
/// have statistics 0; an item of one row is a UserError naming it, as in PyTorch's training mode.
/// On a device, where nobody waits to see how many rows an item has, the one row becomes `bias`.
Normalized instance_norm(ConstTensorView features, const CoordinateSet& set, ConstTensorView weight,
                         ConstTensorView bias, double epsilon = kNormEpsilon,
                         const NormalizedPlaces& places = {});
NormGradients instance_norm_gradient(ConstTensorView features, ConstTensorView grad_output,
                                     const CoordinateSet& set, ConstTensorView weight,
                                     ConstTensorView mean, ConstTensorView inverse_deviation,
                                     const NormGradientPlaces& places = {});

}   // namespace pumice
