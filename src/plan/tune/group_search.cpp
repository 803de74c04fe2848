// Settings first, since they move all decisions at once; then one decision after the other.
#include "plan/tune/group_search.hpp"

#include <algorithm>
#include <utility>

#include "plan/tune/choices.hpp"
#include "plan/tune/estimate.hpp"
#include "plan/tune/sentences.hpp"

#include <fmt/format.h>

namespace pumice::tune {
namespace {

/// What a race found out about one that took part.
void note(const Runner& first, const Runner& runner, double confidence, CandidateReport& report) {
  const std::vector<double> ratios = paired_ratios(runner.seconds, first.seconds);
  report.seconds = estimate_median(runner.seconds, confidence);
  report.ratio = estimate_median(ratios, confidence);
  if (!runner.refusal.empty()) {
    report.verdict = Verdict::refused;
    report.reason = "it could not be measured: " + runner.refusal;
  } else if (!runner.out.empty()) {
    report.verdict = Verdict::slower;
    report.reason = runner.out;
  } else if (!ratios.empty()) {
    report.verdict = Verdict::slower;
    report.reason =
        fmt::format("not the fastest of those measured beside it: {}", words_of(report.ratio));
  }
}

}   // namespace

GroupSearch::GroupSearch(Sampler& sampler, const Group& group, std::size_t number,
                         const Options& options, GroupReport& report, Progress progress)
    : sampler_(sampler),
      group_(group),
      number_(number),
      options_(options),
      report_(report),
      progress_(std::move(progress)),
      choice_(untuned_choice(group)) {}

void GroupSearch::greedy() {
  const double steps = static_cast<double>(group_.decisions.size()) + 1;
  progress_(0, "shared settings");
  try_settings();
  for (std::size_t i = 0; i < group_.decisions.size(); ++i) {
    progress_((static_cast<double>(i) + 1) / steps, group_.decisions[i].name);
    try_decision(i);
  }
  compare_with_untuned();
  conclude();
}

void GroupSearch::exhaustive() {
  const std::vector<Choice> choices = all_choices(group_);
  report_.choices.resize(choices.size());
  std::vector<Proposal> proposals;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    report_.choices[i].name = name_of(group_, choices[i]);
    report_.choices[i].predicted = predicted_cost(group_, choices[i]);
    proposals.push_back({choices[i], &report_.choices[i]});
  }
  progress_(0, fmt::format("all {} choices", choices.size()));
  step(std::move(proposals), choices.size());
  conclude();
}

void GroupSearch::try_settings() {
  report_.choices.resize(group_.settings.size());
  std::vector<Proposal> proposals;
  for (std::size_t i = 0; i < group_.settings.size(); ++i) {
    CandidateReport& report = report_.choices[i];
    report.name = group_.settings[i].name;
    const auto choice = proposal_of(group_, group_.settings[i]);
    if (choice) {
      report.predicted = predicted_cost(group_, *choice);
      proposals.push_back({*choice, &report});
    } else {
      report.reason = "a decision has no candidate with a cut of this setting";
    }
  }
  std::stable_sort(proposals.begin(), proposals.end(), [](const Proposal& a, const Proposal& b) {
    return a.report->predicted < b.report->predicted;
  });
  step(std::move(proposals), static_cast<std::size_t>(options_.most_candidates));
}

void GroupSearch::try_decision(std::size_t number) {
  const Decision& decision = group_.decisions[number];
  std::vector<Proposal> proposals;
  for (const std::size_t candidate : by_prediction(decision)) {
    CandidateReport& report = report_.decisions[number].candidates[candidate];
    Choice choice = choice_;
    choice[number] = candidate;
    if (goes_together(group_, choice)) {
      proposals.push_back({std::move(choice), &report});
    } else {
      report.reason = "its cut is in no setting with the cuts of the other decisions";
    }
  }
  step(std::move(proposals), static_cast<std::size_t>(options_.most_candidates));
}

Runner GroupSearch::runner_of(const Choice& choice) const {
  return {.run = [this, choice](int round) { return sampler_.of_group(number_, choice, round); },
          .rounds_left_out = options_.warmups};
}

Duel GroupSearch::duel_between(const Choice& first, const Choice& second) const {
  return duel(sampler_, runner_of(first), runner_of(second),
              {.confidence = options_.confidence,
               .least_gain = options_.least_gain,
               .most_pairs = options_.most_pairs});
}

void GroupSearch::step(std::vector<Proposal> proposals, std::size_t most) {
  std::erase_if(proposals, [&](const Proposal& proposal) {
    if (proposal.choice == choice_) proposal.report->reason = "others were measured beside it";
    return proposal.choice == choice_;
  });
  for (std::size_t i = most; i < proposals.size(); ++i)
    proposals[i].report->reason = fmt::format("{} others are predicted to cost less", most);
  if (proposals.size() > most)
    proposals.erase(proposals.begin() + static_cast<std::ptrdiff_t>(most), proposals.end());
  if (proposals.empty() || gave_up_ || !sampler_.goes_on()) return;
  Runner first = runner_of(choice_);
  std::vector<Runner> others;
  for (const Proposal& proposal : proposals)
    others.push_back(runner_of(proposal.choice));
  const Runner* best = race(sampler_, first, others);
  for (std::size_t i = 0; i < others.size(); ++i)
    note(first, others[i], options_.confidence, *proposals[i].report);
  if (!first.refusal.empty()) {
    gave_up_ = true;
    fall_back(Verdict::refused,
              fmt::format("{} could not be measured: {}", name_of(group_, choice_), first.refusal));
  }
  if (best == nullptr) return;
  const Proposal& winner = proposals[static_cast<std::size_t>(best - others.data())];
  if (winner.report->ratio.low < 1) settle(winner);   // else slower in every round
}

void GroupSearch::settle(const Proposal& best) {
  const Duel found = duel_between(choice_, best.choice);
  CandidateReport& report = *best.report;
  if (found.ratio.samples > 0) {
    report.seconds = found.second_s;
    report.ratio = found.ratio;
  }
  switch (found.end) {
    case Duel::End::faster:
      report.verdict = Verdict::accepted;
      report.reason = "faster than what ran before: " + words_of(found.ratio);
      choice_ = best.choice;
      if (++steps_ > 1) return;
      report_.untuned_s = found.first_s;
      report_.tuned_s = found.second_s;
      report_.ratio = found.ratio;
      return;
    case Duel::End::not_faster:
      report.verdict = Verdict::within_noise;
      report.reason = fmt::format("not faster by {:.1f} % with confidence: {}",
                                  100 * options_.least_gain, words_of(found.ratio));
      return;
    case Duel::End::stopped:
      report.verdict = Verdict::within_noise;
      report.reason = "the fastest of those measured, and there was no time to make sure of it";
      return;
    case Duel::End::refused: break;
  }
  if (!found.second_refusal.empty()) {
    report.verdict = Verdict::refused;
    report.reason = "it could not be measured: " + found.second_refusal;
    return;
  }
  gave_up_ = true;
  fall_back(Verdict::refused, fmt::format("{} could not be measured: {}", name_of(group_, choice_),
                                          found.first_refusal));
}

void GroupSearch::compare_with_untuned() {
  if (steps_ < 2) return;
  const Duel found = duel_between(untuned_choice(group_), choice_);
  if (found.end == Duel::End::stopped) return;   // each step by itself was made sure of
  if (found.end == Duel::End::refused) {
    fall_back(Verdict::refused, "it could not be measured once more beside the untuned choice: " +
                                    found.first_refusal + found.second_refusal);
    return;
  }
  report_.untuned_s = found.first_s;
  report_.tuned_s = found.second_s;
  report_.ratio = found.ratio;
  if (found.end == Duel::End::not_faster)
    fall_back(Verdict::within_noise, "its steps together are not faster than the untuned choice: " +
                                         words_of(found.ratio));
}

void GroupSearch::fall_back(Verdict verdict, const std::string& reason) {
  choice_ = untuned_choice(group_);
  steps_ = 0;
  take_back(report_, verdict, reason);
}

void GroupSearch::conclude() {
  if (!report_.reason.empty()) return;   // it fell back
  if (steps_ > 0) {
    report_.verdict = Verdict::accepted;
    report_.reason = "faster than untuned: " + words_of(report_.ratio);
  } else {
    const bool is_cut_short = sampler_.stopped() != Stop::finished;
    report_.verdict = is_cut_short ? Verdict::not_measured : Verdict::untuned;
    report_.reason = is_cut_short ? "it stays untuned: tuning ended before all of it was measured"
                                  : "it stays untuned: nothing was faster with confidence";
  }
}

}   // namespace pumice::tune
