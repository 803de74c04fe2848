// Cross entropy of scores and labels, the loss of classification, and its gradient.
#pragma once

#include <cstdint>

#include <pumice/core/results.hpp>
#include <pumice/core/row_count.hpp>

namespace pumice {

struct CrossEntropyOptions {
  ConstTensorView weight{};    // [classes] of the compute type (f64 for f64, else f32); none: 1
  std::int64_t ignored = -1;   // the label of rows that do not count
  double smoothing = 0;        // share of every label that all classes have alike, 0 to 1
  const RowCount* rows = nullptr;   // how many of the N rows are in use; null: all
};

struct CrossEntropy {
  Tensor loss;      // [1]: Σ of the losses of the rows that count, over Σ of their weights; NaN
                    // where none counts
  Tensor weight;    // [1]: Σ of the weights of the labels of the rows that count
  Tensor log_sum;   // [N]: log Σ exp(score), which the gradient needs; of other rows undefined
};
struct CrossEntropyPlaces {
  Place loss{};
  Place weight{};
  Place log_sum{};
};

/// The mean of weight[label] · (1 − smoothing) · l[label] + smoothing / C · Σ_c weight[c] · l[c],
/// where l[c] = log Σ exp(score) − score[c], as torch.nn.functional.cross_entropy. scores: [N, C];
/// labels: i32 or i64 [N], classes 0 to C − 1 or `ignored`. All results are of the compute type.
/// Computed in it, and added up in double, in an order that the number of rows in use decides about
/// alone: rows past it are not read, and the bits do not depend on how many there are. UserError
/// names an argument that does not fit, and a label that is none; on a device, where nobody waits
/// to see labels, the loss is NaN and the next call that waits for the stream raises it.
CrossEntropy cross_entropy(ConstTensorView scores, ConstTensorView labels,
                           const CrossEntropyOptions& options = {},
                           const CrossEntropyPlaces& places = {});

/// What the gradient needs of `cross_entropy`.
struct CrossEntropySums {
  ConstTensorView weight;
  ConstTensorView log_sum;

  CrossEntropySums(ConstTensorView of_weights, ConstTensorView of_rows)
      : weight(of_weights), log_sum(of_rows) {}
  CrossEntropySums(const CrossEntropy& made)   // NOLINT(google-explicit-constructor)
      : weight(made.weight), log_sum(made.log_sum) {}
};

/// [N, C] of the scores' type: `grad_loss`, one number of the compute type, times the derivative of
/// the loss. 0 in rows that do not count, and in those past the ones in use. `made` and options are
/// those of `cross_entropy`.
Tensor cross_entropy_gradient(ConstTensorView scores, ConstTensorView labels,
                              const CrossEntropySums& made, ConstTensorView grad_loss,
                              const CrossEntropyOptions& options = {}, const Place& place = {});

}   // namespace pumice
