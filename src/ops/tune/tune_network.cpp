// Record, group, search, store.
#include <pumice/ops/tune_network.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/plan/plan_book.hpp>

#include "ops/tune/group_stopwatch.hpp"
#include "ops/tune/network_groups.hpp"
#include "ops/tune/plans_to_store.hpp"
#include "ops/tune/recorded_passes.hpp"

namespace pumice {
namespace {

/// Passes of the whole network, with a book for each assignment.
class NetworkStopwatch {
 public:
  NetworkStopwatch(const NetworkPasses& passes, const NetworkGroups& network, const Target& target,
                   PlanBookScope& scope)
      : passes_(passes), network_(network), target_(target), scope_(scope) {}

  double of(const tune::Assignment& assignment, int scan) {
    const auto& run = passes_.whole ? passes_.whole : passes_.run;
    scope_.use(book(assignment));
    run(scan);   // after which layers make at once what this assignment needs
    wait(passes_.stream);
    const auto start = std::chrono::steady_clock::now();
    run(scan);
    wait(passes_.stream);
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }

 private:
  std::shared_ptr<const PlanBook> book(const tune::Assignment& assignment) {
    auto& made = books_[assignment];
    if (made == nullptr)
      made = std::make_shared<const PlanBook>(book_of(network_, assignment, target_));
    return made;
  }

  const NetworkPasses& passes_;
  const NetworkGroups& network_;
  const Target& target_;
  PlanBookScope& scope_;
  std::map<tune::Assignment, std::shared_ptr<const PlanBook>> books_;
};

std::vector<TunedProduct> products_of(const NetworkGroups& network, const tune::Result& result) {
  std::vector<TunedProduct> products;
  for (std::size_t i = 0; i < network.sparse.size(); ++i) {
    const std::size_t g = network.own.size() + i;
    const SparseDecision& decision = network.sparse[i];
    products.push_back({.problem = decision.problem,
                        .calls = static_cast<int>(decision.calls.size()),
                        .untuned = decision.plans[network.groups[g].decisions.front().untuned],
                        .plan = decision.plans[result.assignment[g].front()],
                        .group = g});
  }
  return products;
}

std::vector<TunedLayer> layers_of(const NetworkGroups& network, const tune::Result& result) {
  std::vector<TunedLayer> layers;
  for (std::size_t g = 0; g < network.own.size(); ++g) {
    for (std::size_t d = 0; d < network.own[g].decisions.size(); ++d) {
      const NetworkDecision& decision = network.own[g].decisions[d];
      layers.push_back({.problem = decision.problem,
                        .calls = static_cast<int>(decision.calls.size()),
                        .untuned = decision.plans[network.groups[g].decisions[d].untuned],
                        .plan = decision.plans[result.assignment[g][d]],
                        .group = g,
                        .decision = d});
    }
  }
  return layers;
}

}   // namespace

double usual_budget_s(Device device) {
  return device.kind == DeviceKind::cuda ? 60 : 300;
}

NetworkTuning tune_network(const NetworkPasses& passes, const tune::Options& options,
                           tune::PlanStore* store) {
  check_can_wait(passes.stream);
  const Target& target = target_of(passes.stream.device);
  if (store != nullptr) (void)store->list();   // what is wrong with its file is said before minutes
  PlanBookScope scope(std::make_shared<const PlanBook>());
  const RecordedPasses recorded = recorded_passes(passes);
  NetworkGroups network = groups_of(recorded.calls.front(), target, passes.plans_together);
  add_sparse_groups(network, recorded.sparse.front(), target);
  GroupStopwatch group_watch(recorded, network, passes.stream, !passes.plans_together);
  NetworkStopwatch network_watch(passes, network, target, scope);
  const auto scan_of = [&](int round) { return round % passes.scans; };
  NetworkTuning tuning;
  tuning.result = tune::tune_greedily(
      network.groups,
      {.group = [&](std::size_t group, const tune::Choice& choice,
                    int round) { return group_watch.of_group(group, choice, scan_of(round)); },
       .network = [&](const tune::Assignment& assignment,
                      int round) { return network_watch.of(assignment, scan_of(round)); }},
      options);
  tuning.layers = layers_of(network, tuning.result);
  tuning.products = products_of(network, tuning.result);
  tuning.plans = plans_to_store(recorded, network, tuning.result, target, options.confidence);
  if (store == nullptr) return tuning;
  if (tuning.plans.empty()) {
    tuning.not_stored = "nothing was measured to the end";
    return tuning;
  }
  if (store->put_all(tuning.plans) == tune::Put::not_written) {
    const std::string problem = store->problem();
    tuning.not_stored =
        problem.empty() ? "PUMICE_PLANS says off, or there is no folder for them" : problem;
  } else {
    tuning.stored = std::ssize(tuning.plans);
  }
  return tuning;
}

}   // namespace pumice
