// Sparse products by their keys, each a group of one decision.
#include <algorithm>
#include <utility>

#include <pumice/plan/choose_sparse.hpp>

#include <fmt/format.h>

#include "ops/tune/network_groups.hpp"

namespace pumice {
namespace {

tune::Group group_of(SparseDecision& decision, const Target& target) {
  std::string name = fmt::format("{}, {} rows and {} entries", to_text(decision.problem),
                                 decision.problem.rows, decision.problem.entries);
  tune::Decision made{.name = decision.calls.size() > 1
                                  ? fmt::format("{}, {} times", name, decision.calls.size())
                                  : name,
                      .candidates = {}};
  for (SparseCandidate& one : candidates(decision.problem, target)) {
    made.candidates.push_back({.name = one.plan.name(), .predicted = one.cost});
    decision.plans.push_back(std::make_shared<const SparsePlan>(std::move(one.plan)));
  }
  return {.name = std::move(name), .decisions = {std::move(made)}};
}

}   // namespace

void add_sparse_groups(NetworkGroups& network, const std::vector<SparseCall>& calls,
                       const Target& target) {
  std::vector<tune::PlanKey> keys;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    tune::PlanKey key = key_of(calls[i].problem, target);
    const auto known = std::find(keys.begin(), keys.end(), key);
    const auto place = static_cast<std::size_t>(known - keys.begin());
    if (known == keys.end()) {
      keys.push_back(std::move(key));
      network.sparse.push_back({.problem = calls[i].problem, .calls = {}, .plans = {}});
    }
    network.sparse[place].calls.push_back(i);
  }
  for (SparseDecision& decision : network.sparse)
    network.groups.push_back(group_of(decision, target));
}

}   // namespace pumice
