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
/// runs. Of several in one thread the latest does.
class PlanRecord {
 public:
  PlanRecord();
  ~PlanRecord();
  PlanRecord(const PlanRecord&) = delete;
  PlanRecord& operator=(const PlanRecord&) = delete;

  /// Those since the last call, in order.
  std::vector<RanPlan> take();

 private:
  friend void record_plan(Direction direction, const ConvolutionPlan& plan);

  PlanRecord* before_;
  std::vector<RanPlan> ran_;
};

/// For operators: tells this thread's record, where there is one.
void record_plan(Direction direction, const ConvolutionPlan& plan);

}   // namespace pumice
