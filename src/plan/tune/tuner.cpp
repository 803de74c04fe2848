// The order of tuning: how long each group takes, then the groups, then the network.
#include <pumice/plan/tuner.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "plan/tune/choices.hpp"
#include "plan/tune/estimate.hpp"
#include "plan/tune/group_search.hpp"
#include "plan/tune/network_check.hpp"
#include "plan/tune/sampler.hpp"
#include "plan/tune/sentences.hpp"

#include <fmt/format.h>

namespace pumice::tune {
namespace {

constexpr double kShareOfSearch = 0.75;    // of the budget; the rest compares from end to end
constexpr int kFirstRounds = 3;            // a median of which no single outlier moves
constexpr double kMeasuredShares = 0.05;   // of the progress

constexpr std::size_t kMostNamed = 3;   // groups that a sentence has room for

using Search = void (GroupSearch::*)();

void check(const std::vector<Group>& groups, const Measuring& measuring, const Options& options) {
  check_groups(groups);
  PUMICE_EXPECTS(measuring.group && measuring.network, "measuring has no function for ",
                 measuring.group ? "the network" : "a group", ": give one that returns seconds");
  PUMICE_EXPECTS(options.budget_s >= 0, "budget_s = ", options.budget_s,
                 ": give the seconds that tuning may take");
  PUMICE_EXPECTS(options.confidence > 0 && options.confidence < 1,
                 "confidence = ", options.confidence, ": it lies between 0 and 1, as 0.99 does");
  PUMICE_EXPECTS(options.least_gain >= 0 && options.least_gain < 1,
                 "least_gain = ", options.least_gain, ": it is a part of the time, as 0.01 is");
  PUMICE_EXPECTS(options.most_candidates >= 1, "most_candidates = ", options.most_candidates,
                 ": measure at least 1");
  PUMICE_EXPECTS(options.most_pairs >= 10, "most_pairs = ", options.most_pairs,
                 ": fewer than 10 pairs prove nothing");
  PUMICE_EXPECTS(options.warmups >= 0, "warmups = ", options.warmups,
                 ": it is a number of samples");
}

GroupReport empty_report(const Group& group) {
  GroupReport report;
  report.name = group.name;
  for (const Decision& decision : group.decisions) {
    DecisionReport& made = report.decisions.emplace_back();
    made.name = decision.name;
    made.untuned = made.chosen = decision.untuned;
    for (const Candidate& candidate : decision.candidates)
      made.candidates.push_back({.name = candidate.name, .predicted = candidate.predicted});
  }
  return report;
}

class Tuning {
 public:
  Tuning(const std::vector<Group>& groups, const Measuring& measuring, const Options& options)
      : groups_(groups), options_(options), sampler_(measuring, options) {
    result_.assignment = untuned_assignment(groups);
    for (const Group& group : groups)
      result_.groups.push_back(empty_report(group));
  }

  Result run(Search search) {
    sampler_.stop_after(options_.budget_s * kShareOfSearch);
    sampler_.report(0, "how long each group takes");
    measure_shares();
    search_groups(search);
    sampler_.stop_after(options_.budget_s);
    check_network(sampler_, groups_, tuned_, options_, result_);
    finish();
    return std::move(result_);
  }

 private:
  bool has_choices(std::size_t group) const {
    const auto& decisions = groups_[group].decisions;
    return std::any_of(decisions.begin(), decisions.end(),
                       [](const Decision& decision) { return decision.candidates.size() > 1; });
  }

  /// A few rounds of everything untuned, in turns.
  void measure_shares() {
    std::vector<std::vector<double>> seconds(groups_.size());
    for (int round = -options_.warmups; round < kFirstRounds; ++round) {
      const int number = sampler_.next_round();
      for (std::size_t i = 0; i < groups_.size(); ++i) {
        GroupReport& report = result_.groups[i];
        if (groups_[i].decisions.empty() || report.verdict == Verdict::refused) continue;
        const Sample sample = sampler_.of_group(i, untuned_choice(groups_[i]), number);
        if (sample.seconds && round >= 0) seconds[i].push_back(*sample.seconds);
        if (sample.refusal.empty()) continue;
        report.verdict = Verdict::refused;
        report.reason = "it stays untuned, since that could not be measured: " + sample.refusal;
      }
    }
    for (std::size_t i = 0; i < groups_.size(); ++i)
      result_.groups[i].untuned_s = estimate_median(seconds[i], options_.confidence);
    share_time();
  }

  /// By the untuned times that are known so far.
  void share_time() {
    double total_s = 0;
    for (const GroupReport& report : result_.groups)
      total_s += report.untuned_s.median;
    for (GroupReport& report : result_.groups)
      report.share = total_s > 0 ? report.untuned_s.median / total_s : 0;
  }

  void search_groups(Search search) {
    tuned_ = untuned_assignment(groups_);
    std::vector<std::size_t> order(groups_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return result_.groups[a].share > result_.groups[b].share;
    });
    double done = 0;   // of all time
    for (const std::size_t number : order) {
      GroupReport& report = result_.groups[number];
      const double share = report.share;
      if (!has_choices(number)) {
        report.verdict = Verdict::untuned;
        report.reason = "there is nothing to choose";
      } else if (report.verdict != Verdict::refused) {
        GroupSearch group(sampler_, groups_[number], number, options_, report,
                          [&](double part, const std::string& what) {
                            const double all = done + share * part;
                            sampler_.report(kMeasuredShares + kShareOfSearch * all,
                                            groups_[number].name + ": " + what);
                          });
        (group.*search)();
        tuned_[number] = group.choice();
      }
      done += share;
    }
  }

  void finish() {
    result_.stop = sampler_.stopped();
    share_time();   // groups that were searched have more samples now
    std::vector<std::string> left;
    int accepted = 0;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      GroupReport& report = result_.groups[i];
      if (report.verdict == Verdict::not_measured) left.push_back(report.name);
      if (report.verdict == Verdict::accepted) ++accepted;
      finish_decisions(report, result_.assignment[i], reason_of(result_.stop));
    }
    result_.used_s = sampler_.used_s();
    result_.summary = summary(accepted, left);
    log(LogTopic::plan, "tuning: " + result_.summary);
    sampler_.report(1, result_.summary);
  }

  std::string summary(int accepted, const std::vector<std::string>& left) const {
    std::string text =
        accepted == 0
            ? "Everything stays untuned."
            : fmt::format("{} of {} groups are tuned: from {} to {} end to end, {}.", accepted,
                          groups_.size(), words_of_seconds(result_.untuned_s.median),
                          words_of_seconds(result_.tuned_s.median), words_of(result_.ratio));
    if (result_.stop == Stop::finished) return text;
    text += result_.stop == Stop::cancelled
                ? " Tuning was cancelled"
                : fmt::format(" The budget of {} s ended", options_.budget_s);
    if (left.empty()) return text + ".";
    const std::string named = left.size() <= kMostNamed
                                  ? fmt::format("{}", fmt::join(left, ", "))
                                  : fmt::format("{} of {} groups", left.size(), groups_.size());
    text += fmt::format("; not all was measured of {}.", named);
    return result_.stop == Stop::out_of_budget ? text + " A larger budget measures the rest."
                                               : text;
  }

  const std::vector<Group>& groups_;
  const Options& options_;
  Sampler sampler_;
  Assignment tuned_;
  Result result_;
};

}   // namespace

Result tune_greedily(const std::vector<Group>& groups, const Measuring& measuring,
                     const Options& options) {
  check(groups, measuring, options);
  return Tuning(groups, measuring, options).run(&GroupSearch::greedy);
}

Result tune_exhaustively(const std::vector<Group>& groups, const Measuring& measuring,
                         const Options& options) {
  check(groups, measuring, options);
  for (const Group& group : groups) {
    PUMICE_EXPECTS(count_choices(group, options.most_choices) <= options.most_choices, "group \"",
                   group.name, "\" has more than most_choices = ", options.most_choices,
                   " choices; raise that, give fewer candidates, or use tune_greedily");
  }
  return Tuning(groups, measuring, options).run(&GroupSearch::exhaustive);
}

}   // namespace pumice::tune
