// Which convolutions, linear layers and gradients a network runs, and on what: for the tuner.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <pumice/graphs/csr.hpp>
#include <pumice/maps/kernel_map.hpp>
#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/shared_cuts.hpp>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>

namespace pumice {

/// One call whose plan was chosen. A call that was given a plan or a dataflow is not among them,
/// nor are linear layers on the CPU, which run in one way.
struct OperatorCall {
  ConvolutionProblem problem;
  PlanPtr plan;                 // that it ran with
  KernelMapPtr map;             // null: of a linear layer, whose rows meet themselves
  bool is_transposed = false;   // whether the problem's inputs are the outputs of `map`
};

/// One product of a sparse matrix whose plan was chosen.
struct SparseCall {
  SparseProblem problem;   // with the lengths of rows, where the host knows them
  SparsePlanPtr plan;      // that it ran with
  /// A copy of the pattern; null where an earlier call of the pass has the same key, which is
  /// measured for both.
  std::shared_ptr<const Csr> pattern;
};

/// As long as it lives, calls of all threads are noted, which keeps their maps alive. Not noted are
/// sparse products that are captured into a graph, and calls in an AllocatorScope of one pass.
/// There is one at a time; UserError for a second one.
class CallRecorder {
 public:
  CallRecorder();
  ~CallRecorder();
  CallRecorder(const CallRecorder&) = delete;
  CallRecorder& operator=(const CallRecorder&) = delete;

  /// The calls so far, in their order; it goes on with none.
  std::vector<OperatorCall> take();
  std::vector<SparseCall> take_sparse();
};

/// As long as it lives, calls of this thread are noted, but for sparse products, whatever other
/// threads run or note; in an AllocatorScope of one pass they are not. Of two, the inner one notes.
class ThreadCalls {
 public:
  ThreadCalls();
  ~ThreadCalls();
  ThreadCalls(const ThreadCalls&) = delete;
  ThreadCalls& operator=(const ThreadCalls&) = delete;

  /// The calls so far, in their order; it goes on with none.
  std::vector<OperatorCall> take() { return std::exchange(calls_, {}); }

 private:
  friend void note_call(OperatorCall call);
  std::vector<OperatorCall> calls_;
  ThreadCalls* outer_;
};

/// The calls whose tiles can be those of others: forward passes and input gradients, by map and
/// direction. Of a centred map both directions have the same tiles.
std::vector<LayerOnMap> layers_on_maps(const std::vector<OperatorCall>& calls);

}   // namespace pumice
