// Pooling over windows and over whole batch items.
#pragma once

#include <pumice/maps/build.hpp>
#include <pumice/nn/module.hpp>

namespace pumice::nn {

enum class Pooling : unsigned char { max, average, sum };

/// Over the active inputs of a window. With stride 1 the outputs are the inputs, else the pool
/// makes its own sites as a strided convolution does.
class Pool final : public Module {
 public:
  Pool(Pooling pooling, KernelWindow window, StridedOutputs outputs = StridedOutputs::dilating);
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  bool counts_as_layer() const override { return true; }

  Pooling pooling_;
  KernelWindow window_;
  StridedOutputs outputs_;
};

/// One row for each batch item, at the origin of its grid; 0 for an item without rows.
class GlobalPool final : public Module {
 public:
  explicit GlobalPool(Pooling pooling) : pooling_(pooling) {}
  SparseTensor forward(SparseTensor x, Context& context) override;

 private:
  bool counts_as_layer() const override { return true; }

  Pooling pooling_;
};

}   // namespace pumice::nn
