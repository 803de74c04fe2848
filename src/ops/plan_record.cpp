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

std::vector<RanSparsePlan> PlanRecord::take_sparse() {
  return std::exchange(ran_sparse_, {});
}

void PlanRecord::add(const SparseProblem& problem, const SparsePlan& plan) {
  if (latest == nullptr) return;
  latest->ran_sparse_.push_back({problem, std::make_shared<const SparsePlan>(plan)});
}

}   // namespace pumice
