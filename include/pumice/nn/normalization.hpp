// Normalisation layers. Their parameters stay in the compute type.
#pragma once

#include <pumice/nn/module.hpp>
#include <pumice/ops/folded_norm.hpp>

namespace pumice::nn {

/// Over all rows, per channel; running statistics in evaluation.
class BatchNorm final : public Module {
 public:
  explicit BatchNorm(std::int64_t channels, double epsilon = 1e-5, double momentum = 0.1);
  SparseTensor forward(SparseTensor x, Context& context) override;

  /// What it does in evaluation as y = x · scale + shift, of a bias added before it too.
  ScaleShift affine(const ConstTensorView& added_before = {}) const;
  /// Grows with every change of its parameters.
  std::uint64_t version() const;

 private:
  double epsilon_;
  double momentum_;
  ParameterPtr weight_;
  ParameterPtr bias_;
  ParameterPtr running_mean_;
  ParameterPtr running_var_;
};

/// Over the channels of each row.
class LayerNorm final : public Module {
 public:
  explicit LayerNorm(std::int64_t channels, double epsilon = 1e-5);
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  double epsilon_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

/// Over the rows of each batch item, per channel.
class InstanceNorm final : public Module {
 public:
  explicit InstanceNorm(std::int64_t channels, double epsilon = 1e-5);
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  double epsilon_;
  ParameterPtr weight_;
  ParameterPtr bias_;
};

}   // namespace pumice::nn
