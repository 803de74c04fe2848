// Where operators put their results: into tensors of their own, into tensors that a host framework
// makes, or into memory that the caller has.
#pragma once

#include <pumice/core/tensor.hpp>

namespace pumice {

/// Makes results for a host framework, so that they are its own tensors from the start and need no
/// copy.
class Results {
 public:
  virtual ~Results() = default;
  /// A tensor of just this shape and type on the device of `stream`, uninitialised, for work that
  /// is enqueued there.
  virtual Tensor make(const Shape& shape, DType dtype, StreamView stream) = 0;
};

/// Where one result of an operator goes. What returns one result takes one of these last, what
/// returns several a struct of them with the names of the results.
///
///     convolution(x, w, map);                                // a tensor as any other
///     convolution(x, w, map, {}, results);                   // made by `results`
///     batch_norm_training_gradient(…, {}, {.weight = part});   // into memory the caller has
class Place {
 public:
  /// An ordinary tensor.
  Place() = default;
  /// Made by `results`, which outlive the call.
  Place(Results& results) : results_(&results) {}   // NOLINT(google-explicit-constructor)
  /// Memory of the caller's: of just the result's shape and type, and not where an input lies. It
  /// is what the operator returns.
  Place(Tensor memory) : memory_(std::move(memory)) {}   // NOLINT(google-explicit-constructor)
  /// The same, and it holds zeros: sums need not clear it first, so that the room for many results
  /// can be cleared at once.
  static Place zeroed(Tensor memory);

  bool is_given() const { return memory_.defined(); }
  bool is_zeroed() const { return is_zeroed_; }

  /// For operators: the result, uninitialised. UserError, which calls the place `name`, for memory
  /// that is of another shape or type, or on another device.
  Tensor make(const Shape& shape, DType dtype, StreamView stream, const char* name = "place") const;
  /// The same, holding zeros.
  Tensor make_zeros(const Shape& shape, DType dtype, StreamView stream,
                    const char* name = "place") const;
  /// A result that exists already, `made`: itself, unless it has to go somewhere else.
  Tensor put(Tensor made, const char* name = "place") const;

 private:
  Results* results_ = nullptr;
  Tensor memory_{};
  bool is_zeroed_ = false;
};

}   // namespace pumice
