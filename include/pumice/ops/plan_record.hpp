// Which plans ran, for whoever wants to know.
#pragma once

#include <vector>

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>

namespace pumice {

struct RanPlan {
  Direction direction = Direction::forward;
  PlanPtr plan;
};

struct RanSparsePlan {
  SparseProblem problem;
  SparsePlanPtr plan;
};

/// Keeps, as long as it lives, the plan of each convolution and gradient of one that its thread
/// runs, and on a device of each linear layer; apart from these, those of sparse products, whose
/// layers make several each. Of several in one thread the latest does.
class PlanRecord {
 public:
  PlanRecord();
  ~PlanRecord();
  PlanRecord(const PlanRecord&) = delete;
  PlanRecord& operator=(const PlanRecord&) = delete;

  /// Those since the last call, in order.
  std::vector<RanPlan> take();
  std::vector<RanSparsePlan> take_sparse();

  /// For operators: tells this thread's record, where there is one.
  static void add(Direction direction, const ConvolutionPlan& plan);
  static void add(const SparseProblem& problem, const SparsePlan& plan);

 private:
  PlanRecord* before_;
  std::vector<RanPlan> ran_;
  std::vector<RanSparsePlan> ran_sparse_;
};

}   // namespace pumice
