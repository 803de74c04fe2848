#include <pumice/ops/plan_record.hpp>

#include <memory>
#include <utility>

namespace pumice {
namespace {

thread_local PlanRecord* latest = nullptr;

}   // namespace

PlanRecord::PlanRecord() : before_(std::exchange(latest, this)) {}

PlanRecord::~PlanRecord() {
  latest = before_;
}

std::vector<RanPlan> PlanRecord::take() {
  return std::exchange(ran_, {});
}

void PlanRecord::add(Direction direction, const ConvolutionPlan& plan) {
  if (latest == nullptr) return;
  latest->ran_.push_back({direction, std::make_shared<const ConvolutionPlan>(plan)});
}

}   // namespace pumice
