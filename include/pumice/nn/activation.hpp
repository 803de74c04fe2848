// Activations as layers.
#pragma once

#include <pumice/kernels/epilogue.hpp>
#include <pumice/nn/module.hpp>

namespace pumice::nn {

class Activate final : public Module {
 public:
  explicit Activate(Activation activation, double slope = 0.01)
      : activation_(activation), slope_(slope) {}
  SparseTensor forward(SparseTensor x, Context& context) override;

  Activation activation() const { return activation_; }
  double slope() const { return slope_; }

 private:
  Activation activation_;
  double slope_;
};

inline std::shared_ptr<Activate> relu() {
  return std::make_shared<Activate>(Activation::relu);
}

/// "relu", "leaky_relu", …
std::string_view name_of(Activation activation);

}   // namespace pumice::nn
