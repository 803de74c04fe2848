// Which plans ran, for whoever wants to know.
#pragma once

#include <vector>

#include <pumice/plan/convolution_plan.hpp>

namespace pumice {

struct RanPlan {
  Direction direction = Direction::forward;
  PlanPtr plan;
};

/// Keeps, as long as it lives, the plan of each convolution and gradient of one that its thread
/// runs, and on a device of each linear layer. Of several in one thread the latest does.
class PlanRecord {
 public:
  PlanRecord();
  ~PlanRecord();
  PlanRecord(const PlanRecord&) = delete;
  PlanRecord& operator=(const PlanRecord&) = delete;

  /// Those since the last call, in order.
  std::vector<RanPlan> take();

  /// For operators: tells this thread's record, where there is one.
  static void add(Direction direction, const ConvolutionPlan& plan);

 private:
  PlanRecord* before_;
  std::vector<RanPlan> ran_;
};

}   // namespace pumice
