// A product of a sparse matrix once more, with any plan, on numbers of its own.
#pragma once

#include <memory>

#include <pumice/ops/operator_calls.hpp>

#include "ops/tune/replay.hpp"

namespace pumice {

class SparseReplay {
 public:
  /// `pattern`: the call's, or that of an earlier call of the same key.
  SparseReplay(const SparseProblem& problem, std::shared_ptr<const Csr> pattern,
               ReplayTensors& tensors);

  /// Enqueues it.
  void run(const SparsePlan& plan);

 private:
  void run_gradient(const SparsePlan& plan);

  SparseProblem problem_;
  std::shared_ptr<const Csr> pattern_;   // that the product goes over
  Csr forward_;                          // of a gradient of features: that of the forward pass
  Tensor left_, right_, values_, source_, attention_, entry_;
};

}   // namespace pumice
