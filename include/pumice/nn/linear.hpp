// A dense layer over the channels of every row.
#pragma once

#include <pumice/kernels/packed_weights.hpp>
#include <pumice/nn/module.hpp>

namespace pumice::nn {

/// Weight [C_out, C_in], as PyTorch stores it.
class Linear final : public Module {
 public:
  Linear(std::int64_t in_channels, std::int64_t out_channels, bool bias = true);
  SparseTensor forward(SparseTensor x, Context& context) override;

  const ParameterPtr& weight() const { return weight_; }

 private:
  bool counts_as_layer() const override { return true; }

  ParameterPtr weight_;
  ParameterPtr bias_;   // null without one
  PackedWeights packed_{};
  std::uint64_t packed_version_ = 0;
};

}   // namespace pumice::nn
