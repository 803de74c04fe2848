// Cuts and settings: what may be chosen together.
#include "plan/tune/choices.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include <pumice/core/error.hpp>

namespace pumice::tune {
namespace {

bool contains(const std::vector<int>& cuts, int cut) {
  return std::find(cuts.begin(), cuts.end(), cut) != cuts.end();
}

void check_decision(const Group& group, const Decision& decision) {
  const std::string name =
      detail::concatenate("decision \"", decision.name, "\" of group \"", group.name, "\"");
  PUMICE_EXPECTS(!decision.candidates.empty(), name,
                 ": it has no candidates; give at least the one that would run untuned");
  PUMICE_EXPECTS(decision.untuned < decision.candidates.size(), name,
                 ": untuned = ", decision.untuned, ": it is the index of one of ",
                 decision.candidates.size(), " candidates");
  for (const Candidate& candidate : decision.candidates) {
    PUMICE_EXPECTS(!std::isnan(candidate.predicted), name, ": the cost predicted for \"",
                   candidate.name, "\" is no number; give 0 where nothing is predicted");
  }
}

}   // namespace

void check_groups(const std::vector<Group>& groups) {
  for (const Group& group : groups) {
    for (const Decision& decision : group.decisions)
      check_decision(group, decision);
  }
}

Choice untuned_choice(const Group& group) {
  Choice choice;
  for (const Decision& decision : group.decisions)
    choice.push_back(decision.untuned);
  return choice;
}

Assignment untuned_assignment(const std::vector<Group>& groups) {
  Assignment assignment;
  for (const Group& group : groups)
    assignment.push_back(untuned_choice(group));
  return assignment;
}

std::vector<int> cuts_of(const Group& group, const Choice& choice) {
  PUMICE_EXPECTS(choice.size() == group.decisions.size(), "choice of ", choice.size(),
                 " candidates for the ", group.decisions.size(), " decisions of group \"",
                 group.name, "\": give one for each");
  std::vector<int> cuts;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::vector<Candidate>& candidates = group.decisions[i].candidates;
    PUMICE_EXPECTS(choice[i] < candidates.size(), "candidate ", choice[i], " of decision \"",
                   group.decisions[i].name, "\": it has ", candidates.size());
    if (candidates[choice[i]].cut != kNoCut) cuts.push_back(candidates[choice[i]].cut);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  return cuts;
}

bool goes_together(const Group& group, const Choice& choice) {
  const std::vector<int> cuts = cuts_of(group, choice);
  if (group.settings.empty() || choice == untuned_choice(group)) return true;
  return std::any_of(group.settings.begin(), group.settings.end(), [&](const Setting& setting) {
    return std::all_of(cuts.begin(), cuts.end(),
                       [&](int cut) { return contains(setting.cuts, cut); });
  });
}

std::vector<std::size_t> by_prediction(const Decision& decision) {
  std::vector<std::size_t> order(decision.candidates.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    const double cost_a = decision.candidates[a].predicted;
    const double cost_b = decision.candidates[b].predicted;
    if (cost_a != cost_b) return cost_a < cost_b;
    return a == decision.untuned && b != decision.untuned;
  });
  return order;
}

std::optional<Choice> proposal_of(const Group& group, const Setting& setting) {
  Choice choice;
  for (const Decision& decision : group.decisions) {
    const std::vector<std::size_t> order = by_prediction(decision);
    const auto fitting = std::find_if(order.begin(), order.end(), [&](std::size_t candidate) {
      const int cut = decision.candidates[candidate].cut;
      return cut == kNoCut || contains(setting.cuts, cut);
    });
    if (fitting == order.end()) return std::nullopt;
    choice.push_back(*fitting);
  }
  return choice;
}

double predicted_cost(const Group& group, const Choice& choice) {
  double cost = 0;
  for (std::size_t i = 0; i < choice.size(); ++i)
    cost += group.decisions[i].candidates[choice[i]].predicted;
  return cost;
}

std::string name_of(const Group& group, const Choice& choice) {
  std::string text;
  bool are_equal = true;
  for (std::size_t i = 0; i < choice.size(); ++i) {
    const std::string& name = group.decisions[i].candidates[choice[i]].name;
    are_equal = are_equal && name == group.decisions[0].candidates[choice[0]].name;
    text += (i == 0 ? "" : ", ") + name;
  }
  return are_equal && !choice.empty() ? group.decisions[0].candidates[choice[0]].name : text;
}

std::size_t count_choices(const Group& group, std::size_t most) {
  std::size_t count = 1;
  for (const Decision& decision : group.decisions) {
    if (decision.candidates.size() > most / count) return most + 1;
    count *= decision.candidates.size();
  }
  return count;
}

std::vector<Choice> all_choices(const Group& group) {
  std::vector<Choice> choices;
  Choice choice(group.decisions.size(), 0);
  while (true) {   // counts up, the last decision fastest
    if (goes_together(group, choice)) choices.push_back(choice);
    std::size_t at = choice.size();
    while (at > 0 && ++choice[at - 1] == group.decisions[at - 1].candidates.size())
      choice[--at] = 0;
    if (at == 0) return choices;
  }
}

}   // namespace pumice::tune
