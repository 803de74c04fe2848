// A descent over the heights of all layers: all layers of a map that have one height move to
// another one together, as long as that makes the predicted sum smaller.
#include <pumice/plan/shared_cuts.hpp>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <pumice/plan/choose.hpp>

#include "plan/measured_choices.hpp"
#include "plan/space/device_problem.hpp"
#include "plan/space/tile_heights.hpp"

namespace pumice {
namespace {

// What a cut takes for each row and offset, in the units of tile_cost. A unit was some 16 ns on an
// H200 when this was measured, and is 15 since those costs were fitted anew (96 -> 96 channels at
// 91,767 rows: 2,271 units in 34.5 us); a second height for the four
// finest maps of MinkUNet42 at half width, 5.4 million rows x offsets, took 66 us.
constexpr double kCutUnits = 7.5e-4;
constexpr double kMultiprocessors = 132;   // of that H200: a unit is work of one of them

/// Of a layer, or of several with one key, which share their plan.
struct Decision {
  ConvolutionProblem problem;
  std::vector<int> maps{};           // one for each layer
  std::vector<HeightPlan> heights;   // the rules' first
  std::size_t chosen = 0;
  bool is_fixed = false;   // another than the rules' was measured to be better

  const HeightPlan& plan() const { return heights[chosen]; }
};

struct Map {
  double cut_cost = 0;
  std::set<std::size_t> decisions;
};

using Cut = std::tuple<std::int32_t, std::int32_t, bool>;   // height, splits, sorted

Cut cut_of(const ConvolutionPlan& plan) {
  return {plan.tile->tile_rows, plan.splits, plan.sort_by_mask};
}

class Network {
 public:
  Network(const std::vector<LayerOnMap>& layers, const Target& target) : target_(target) {
    std::map<std::pair<std::string, int>, std::size_t> of_key;
    for (const LayerOnMap& layer : layers) {
      const PlanPtr measured = measured_choice(layer.problem, target);
      const PlanPtr rules = choose_by_rules(layer.problem, target);
      const bool was_tuned = measured != nullptr && !measured->runs_like(*rules);
      const PlanPtr first = was_tuned ? measured : rules;
      if (!first->tile || first->dataflow != Dataflow::implicit_gemm || layer.problem.identity)
        continue;
      const tune::PlanKey key = key_of(layer.problem, target);
      const auto [known, is_new] =
          of_key.emplace(std::pair(key.problem, key.rows_bucket), decisions_.size());
      if (is_new) {
        decisions_.push_back({.problem = layer.problem,
                              .heights = heights_of(layer.problem, target, *first),
                              .is_fixed = was_tuned});
      }
      decisions_[known->second].maps.push_back(layer.map);
      Map& map = maps_[layer.map];
      map.decisions.insert(known->second);
      map.cut_cost = std::max(map.cut_cost, kCutUnits * kMultiprocessors / target.multiprocessors *
                                                static_cast<double>(layer.problem.out_rows) *
                                                static_cast<double>(layer.problem.offsets));
    }
  }

  /// Until no move makes the sum smaller; each does, so that it ends.
  void descend() {
    double best = cost();
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& [number, map] : maps_) {
        for (const Cut& from : cuts_of(map)) {
          for (const Cut& to : reachable(map, from)) {
            const std::vector<std::size_t> before = chosen();
            move(map, from, to);
            if (const double now = cost(); now < best) {
              best = now;
              moved = true;
              break;   // there is no `from` any more
            }
            restore(before);
          }
        }
      }
    }
  }

  /// Of all layers, since a book answers for nearby numbers of rows too; none where none changed.
  PlanBook book() const {
    PlanBook book;
    const auto is_as_before = [](const Decision& decision) { return decision.chosen == 0; };
    if (std::ranges::all_of(decisions_, is_as_before)) return book;
    for (const Decision& decision : decisions_) {
      auto plan = std::make_shared<ConvolutionPlan>(decision.plan().plan);
      if (decision.chosen != 0)
        plan->reason = "tiles as high as those of other layers on its map, which are cut anyway";
      book.set(decision.problem, target_, std::move(plan));
    }
    return book;
  }

 private:
  std::set<Cut> cuts_of(const Map& map) const {
    std::set<Cut> cuts;
    for (const std::size_t decision : map.decisions)
      cuts.insert(cut_of(decisions_[decision].plan().plan));
    return cuts;
  }

  /// Other cuts that layers of the map with the cut `from` could take.
  std::set<Cut> reachable(const Map& map, const Cut& from) const {
    std::set<Cut> cuts;
    for (const std::size_t number : map.decisions) {
      const Decision& decision = decisions_[number];
      if (decision.is_fixed || cut_of(decision.plan().plan) != from) continue;
      for (const HeightPlan& height : decision.heights)
        cuts.insert(cut_of(height.plan));
    }
    cuts.erase(from);
    return cuts;
  }

  void move(const Map& map, const Cut& from, const Cut& to) {
    for (const std::size_t number : map.decisions) {
      Decision& decision = decisions_[number];
      if (decision.is_fixed || cut_of(decision.plan().plan) != from) continue;
      for (std::size_t i = 0; i < decision.heights.size(); ++i) {
        if (cut_of(decision.heights[i].plan) == to) decision.chosen = i;
      }
    }
  }

  std::vector<std::size_t> chosen() const {
    std::vector<std::size_t> numbers;
    for (const Decision& decision : decisions_)
      numbers.push_back(decision.chosen);
    return numbers;
  }

  void restore(const std::vector<std::size_t>& numbers) {
    for (std::size_t i = 0; i < numbers.size(); ++i)
      decisions_[i].chosen = numbers[i];
  }

  double cost() const {
    double sum = 0;
    for (const Decision& decision : decisions_)
      sum += decision.plan().cost * static_cast<double>(decision.maps.size());
    for (const auto& [number, map] : maps_)
      sum += map.cut_cost * static_cast<double>(cuts_of(map).size());
    return sum;
  }

  const Target& target_;
  std::vector<Decision> decisions_;
  std::map<int, Map> maps_;
};

}   // namespace

PlanBook plans_of_shared_cuts(const std::vector<LayerOnMap>& layers, const Target& target) {
  if (!target.on_device()) return {};
  Network network(layers, target);
  network.descend();
  return network.book();
}

}   // namespace pumice
