// The numbers a network learns, or keeps beside those it learns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <pumice/core/tensor.hpp>

namespace pumice::nn {

struct ParameterSpec {
  Shape shape;
  bool trainable = true;       // false: a buffer, such as a running mean
  bool compute_type = false;   // stays f32 when weights become f16 or bf16: norms and biases
  std::int64_t fan_in = 0;     // drawn from ±1/sqrt(fan_in); 0: constant `initial`
  double initial = 0;
};

class Parameter {
 public:
  /// f32, every element `spec.initial`; `initialize` draws the random ones.
  explicit Parameter(const ParameterSpec& spec);

  const ParameterSpec& spec() const { return spec_; }
  const Tensor& value() const { return value_; }
  /// The elements to write to. Counts as a change: what was derived from them is made anew.
  Tensor& edit();
  /// Takes a tensor of the same shape and type.
  void set(Tensor value);
  /// How often the elements were handed out for writing.
  std::uint64_t version() const { return version_; }
  /// Converts to `type`, or to its compute type where the parameter stays in that.
  void to(DType type);
  /// Moves it to the device of `stream`, in the order of that stream; to the CPU waits.
  void to(StreamView stream);

  /// Sum of all gradients since `clear_gradient`, in the compute type; undefined when none came.
  const Tensor& gradient() const { return gradient_; }
  void accumulate(const Tensor& gradient);
  void clear_gradient() { gradient_ = {}; }

 private:
  ParameterSpec spec_;
  Tensor value_;
  Tensor gradient_{};
  std::uint64_t version_ = 0;
};

using ParameterPtr = std::shared_ptr<Parameter>;

struct NamedParameter {
  std::string name;   // path, "stem.0.weight"
  ParameterPtr parameter;
};

/// f64 for f64, f32 for f32, f16 and bf16.
DType compute_dtype(DType type);

}   // namespace pumice::nn
