// Groups by maps, decisions by keys, cuts by what a plan needs of its map.
#include "ops/tune/network_groups.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <pumice/plan/choose.hpp>

#include <fmt/format.h>

#include "maps/windows.hpp"

namespace pumice {
namespace {

/// Numbers what plans need of the map of a group; equal needs have one number.
class Cuts {
 public:
  int of(const ConvolutionProblem& problem, bool is_transposed, const ConvolutionPlan& plan,
         const Target& target) {
    if (!target.on_device() || problem.identity) return tune::kNoCut;   // a call cuts for itself
    return number(need(is_transposed, plan));
  }

  /// A setting for each way to cut tiles, in both directions, with the lists that gradients need,
  /// and one that allows everything, or `most` where there are such.
  std::vector<tune::Setting> settings(const std::optional<tune::Setting>& most) const {
    std::map<std::string, std::vector<int>> by_tiles;
    std::vector<int> lists, all;
    for (const auto& [need, cut] : numbers_) {
      all.push_back(cut);
      (need.is_of_tiles ? by_tiles[need.name] : lists).push_back(cut);
    }
    std::vector<tune::Setting> settings;
    for (auto& [name, cuts] : by_tiles) {
      cuts.insert(cuts.end(), lists.begin(), lists.end());
      settings.push_back({.name = name, .cuts = std::move(cuts)});
    }
    if (most) {
      settings.push_back(*most);
    } else if (!all.empty()) {
      settings.push_back({.name = "any", .cuts = std::move(all)});
    }
    return settings;
  }

 private:
  /// What is cut of a map, from the side of its outputs or of its inputs.
  struct Need {
    std::string name;
    bool is_of_tiles = false;
    bool of_inputs = false;

    auto operator<=>(const Need&) const = default;
  };

  static Need need(bool is_transposed, const ConvolutionPlan& plan) {
    const int height = plan.tile ? plan.tile->tile_rows : 0;
    switch (plan.dataflow) {
      case Dataflow::implicit_gemm:
        return {.name = fmt::format("tiles of {} rows{}{}", height,
                                    plan.sort_by_mask ? "" : ", unsorted",
                                    plan.splits > 1 ? fmt::format(", {} splits", plan.splits) : ""),
                .is_of_tiles = true,
                .of_inputs = is_transposed};
      case Dataflow::fetch_on_demand:
        return {.name = fmt::format("tiles of {} pairs", height),
                .is_of_tiles = true,
                .of_inputs = is_transposed};
      case Dataflow::gather_gemm_scatter:
      case Dataflow::sum_over_pairs: break;
    }
    return {.name = "pairs"};
  }

  int number(const Need& need) {
    return numbers_.emplace(need, static_cast<int>(numbers_.size())).first->second;
  }

  std::map<Need, int> numbers_;
};

bool waits(const ConvolutionPlan& plan, const Target& target) {
  return target.on_device() && plan.dataflow == Dataflow::gather_gemm_scatter;
}

/// Whether a plan adds products in any order where the rules' plan has the same bits every time.
/// Nobody who tunes asks for that.
bool loses_order(const ConvolutionPlan& plan, const ConvolutionPlan& untuned) {
  return plan.write == Write::add && untuned.write != Write::add;
}

/// Numbers of sets that are joined one after the other.
class Joined {
 public:
  explicit Joined(std::size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t root(std::size_t i) {
    while (parent_[i] != i)
      i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(std::size_t a, std::size_t b) { parent_[root(b)] = root(a); }

 private:
  std::vector<std::size_t> parent_;
};

/// Whether a call needs tiles of its own beside those of calls the other way: of a centred map the
/// transpose has the same.
bool looks_back(const OperatorCall& call) {
  if (call.map == nullptr) return false;
  const bool is_centred = call.map->in() == call.map->out() && call.map->view().has_identity_offset;
  return call.is_transposed && !is_centred;
}

std::string text_of(const tune::PlanKey& key) {
  return fmt::format("{}/{}/{}", key.problem, key.rows_bucket, key.density_bucket.value_or(-1000));
}

std::string name_of_decision(const NetworkDecision& decision) {
  return fmt::format(
      "{}, {} rows{}", to_text(decision.problem), decision.problem.out_rows,
      decision.calls.size() > 1 ? fmt::format(", {} times", decision.calls.size()) : "");
}

std::string name_of_group(const NetworkGroup& group) {
  if (group.maps.empty())
    return fmt::format("linear, {} rows", group.decisions.front().problem.out_rows);
  std::string name = name_of_map(*group.maps.front());
  if (group.maps.size() > 1) name += fmt::format(" and {} more", group.maps.size() - 1);
  return name;
}

/// The rules' plan first; `shared`, null or what runs untuned in place of that, is among them.
tune::Decision candidates_of(NetworkDecision& decision, bool is_transposed, const Target& target,
                             const PlanPtr& shared, Cuts& cuts) {
  tune::Decision made{.name = name_of_decision(decision), .candidates = {}};
  const auto add = [&](PlanPtr plan, double predicted) {
    made.candidates.push_back({.name = plan->name(),
                               .predicted = predicted,
                               .cut = cuts.of(decision.problem, is_transposed, *plan, target)});
    decision.plans.push_back(std::move(plan));
  };
  for (Candidate& one : candidates(decision.problem, target)) {
    if (waits(one.plan, target)) continue;
    if (!decision.plans.empty() && loses_order(one.plan, *decision.plans.front())) continue;
    add(std::make_shared<const ConvolutionPlan>(std::move(one.plan)), one.cost);
  }
  if (shared == nullptr) return made;
  const auto same = std::ranges::find_if(
      decision.plans, [&](const PlanPtr& plan) { return plan->runs_like(*shared); });
  made.untuned = static_cast<std::size_t>(same - decision.plans.begin());
  if (same == decision.plans.end()) {
    add(shared, made.candidates.front().predicted);
  } else {
    *same = shared;   // with its reason
  }
  return made;
}

/// The cuts of what runs untuned.
tune::Setting untuned_cuts(const tune::Group& group) {
  return {.name = "as the graph cuts", .cuts = cuts_of(group, untuned_choice(group))};
}

}   // namespace

std::string name_of_map(const KernelMap& map) {
  const KernelMapView view = map.view();
  const std::string rows = view.in_rows == view.out_rows
                               ? fmt::format("{} rows", view.out_rows)
                               : fmt::format("{} to {} rows", view.in_rows, view.out_rows);
  return fmt::format("{}, {}", describe(map.window()), rows);
}

NetworkGroups groups_of(const std::vector<OperatorCall>& calls, const Target& target,
                        bool plans_together) {
  const PlanBook shared =
      plans_together ? plans_of_shared_cuts(layers_on_maps(calls), target) : PlanBook();
  std::map<const KernelMap*, std::size_t> first_of_map;
  std::map<std::string, std::size_t> first_of_key;
  Joined joined(calls.size());
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    keys.push_back(text_of(key_of(calls[i].problem, target)));
    if (target.on_device() && calls[i].map != nullptr)
      joined.join(first_of_map.emplace(calls[i].map.get(), i).first->second, i);
    joined.join(first_of_key.emplace(keys[i], i).first->second, i);
  }
  std::map<std::size_t, std::size_t> group_of_root;
  std::vector<std::map<std::string, std::size_t>> decision_of_key;
  NetworkGroups network;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const std::size_t number =
        group_of_root.emplace(joined.root(i), network.own.size()).first->second;
    if (number == network.own.size()) {
      network.own.emplace_back();
      decision_of_key.emplace_back();
    }
    NetworkGroup& group = network.own[number];
    const KernelMap* const map = calls[i].map.get();
    if (map != nullptr && std::ranges::find(group.maps, map) == group.maps.end())
      group.maps.push_back(map);
    const std::size_t place =
        decision_of_key[number].emplace(keys[i], group.decisions.size()).first->second;
    if (place == group.decisions.size())
      group.decisions.push_back({.problem = calls[i].problem, .calls = {}, .plans = {}});
    group.decisions[place].calls.push_back(i);
  }
  for (NetworkGroup& group : network.own) {
    tune::Group made{.name = name_of_group(group), .decisions = {}};
    if (!target.on_device() || group.maps.empty())   // a group for each problem
      made.name += fmt::format(", {}", to_text(group.decisions.front().problem));
    Cuts cuts;
    for (NetworkDecision& decision : group.decisions) {
      made.decisions.push_back(candidates_of(decision, looks_back(calls[decision.calls.front()]),
                                             target, shared.find(key_of(decision.problem, target)),
                                             cuts));
    }
    made.settings =
        cuts.settings(plans_together ? std::optional(untuned_cuts(made)) : std::nullopt);
    network.groups.push_back(std::move(made));
  }
  return network;
}

std::vector<LayerOnMap> layers_on_maps(const std::vector<OperatorCall>& calls) {
  std::map<std::pair<const KernelMap*, bool>, int> numbers;
  std::vector<LayerOnMap> layers;
  for (const OperatorCall& call : calls) {
    if (call.problem.direction == Direction::weight_gradient || call.map == nullptr) continue;
    const auto number = static_cast<int>(numbers.size());
    layers.push_back(
        {call.problem,
         numbers.emplace(std::pair(call.map.get(), looks_back(call)), number).first->second});
  }
  return layers;
}

PlanBook book_of(const NetworkGroups& network, const tune::Assignment& assignment,
                 const Target& target) {
  PlanBook book;
  for (std::size_t group = 0; group < network.own.size(); ++group) {
    for (std::size_t i = 0; i < network.own[group].decisions.size(); ++i) {
      const NetworkDecision& decision = network.own[group].decisions[i];
      book.set(decision.problem, target, decision.plans[assignment[group][i]]);
    }
  }
  for (std::size_t i = 0; i < network.sparse.size(); ++i) {
    const SparseDecision& decision = network.sparse[i];
    book.set(decision.problem, target, decision.plans[assignment[network.own.size() + i].front()]);
  }
  return book;
}

}   // namespace pumice
