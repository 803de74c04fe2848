// What ran is recorded in order, by the latest record of the thread.
#include <pumice/ops/plan_record.hpp>

#include <thread>

#include <gtest/gtest.h>

namespace pumice {
namespace {

const ConvolutionPlan kPlan{.dataflow = Dataflow::fetch_on_demand, .tile_rows = 64};

TEST(PlanRecord, holds_what_its_thread_ran_while_it_lived) {
  PlanRecord::add(Direction::forward, kPlan);   // nobody records
  PlanRecord outer;
  PlanRecord::add(Direction::forward, kPlan);
  {
    PlanRecord inner;
    PlanRecord::add(Direction::input_gradient, kPlan);
    const std::vector<RanPlan> ran = inner.take();
    ASSERT_EQ(ran.size(), 1u);
    EXPECT_EQ(ran[0].direction, Direction::input_gradient);
  }
  std::thread([] { PlanRecord::add(Direction::forward, kPlan); }).join();
  PlanRecord::add(Direction::weight_gradient, {.dataflow = Dataflow::sum_over_pairs});
  const std::vector<RanPlan> ran = outer.take();
  ASSERT_EQ(ran.size(), 2u);
  EXPECT_TRUE(ran[0].plan->runs_like(kPlan));
  EXPECT_EQ(ran[1].plan->name(), "sum_over_pairs");
  EXPECT_TRUE(outer.take().empty());
}

}   // namespace
}   // namespace pumice
