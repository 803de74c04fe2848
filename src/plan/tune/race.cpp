// Everything is compared inside one round, so that slow changes of the machine and the size of the
// round's scan fall on both sides alike.
#include "plan/tune/race.hpp"

#include <algorithm>
#include <cstddef>

#include "plan/tune/estimate.hpp"

#include <fmt/format.h>

namespace pumice::tune {
namespace {

constexpr int kRounds = 20;
// One sample is an outlier now and then; two in a row of one runner are not.
constexpr int kRoundOfClearLosers = 2;
constexpr double kClearlySlower = 2;
constexpr int kRoundsOfHalving[] = {3, 6, 12};
constexpr int kFirstLook = 10;   // the first at which all pairs of one sign are worth 99.8 %

/// Runs `runner` once; false where measuring has to stop. A refusal is kept in the runner.
bool run_once(Runner& runner, int round) {
  while (runner.rounds_left_out > 0) {
    const Sample sample = runner.run(round);
    if (!sample.seconds && sample.refusal.empty()) return false;
    runner.refusal = sample.refusal;
    if (!sample.seconds) return true;
    --runner.rounds_left_out;
  }
  const Sample sample = runner.run(round);
  if (!sample.seconds && sample.refusal.empty()) return false;
  runner.refusal = sample.refusal;
  if (sample.seconds) runner.seconds.push_back(*sample.seconds);
  return true;
}

std::vector<Runner*> running(std::vector<Runner>& runners) {
  std::vector<Runner*> left;
  for (Runner& runner : runners) {
    if (runner.is_running()) left.push_back(&runner);
  }
  return left;
}

double ratio_to(const Runner& first, const Runner& runner) {
  return median_of(paired_ratios(runner.seconds, first.seconds));
}

void take_out_clear_losers(const Runner& first, const std::vector<Runner*>& left) {
  const double limit_s = kClearlySlower * median_of(first.seconds);
  for (Runner* runner : left) {
    const double best_s = *std::min_element(runner->seconds.begin(), runner->seconds.end());
    if (best_s <= limit_s) continue;
    runner->out = fmt::format("clearly slower: {:.2f} times the time after {} rounds",
                              ratio_to(first, *runner), runner->seconds.size());
  }
}

/// In ascending order of the ratio; those that are equal stay in the order of their predictions.
void sort_by_ratio(const Runner& first, std::vector<Runner*>& left) {
  std::stable_sort(left.begin(), left.end(), [&](const Runner* a, const Runner* b) {
    return ratio_to(first, *a) < ratio_to(first, *b);
  });
}

void take_out_slower_half(const Runner& first, std::vector<Runner*> left) {
  sort_by_ratio(first, left);
  for (std::size_t i = std::max<std::size_t>((left.size() + 1) / 2, 2); i < left.size(); ++i) {
    left[i]->out = fmt::format("in the slower half after {} rounds, at {:.3f} times the time",
                               left[i]->seconds.size(), ratio_to(first, *left[i]));
  }
}

void thin_out(int round, const Runner& first, std::vector<Runner>& others) {
  if (round == kRoundOfClearLosers) take_out_clear_losers(first, running(others));
  if (std::find(std::begin(kRoundsOfHalving), std::end(kRoundsOfHalving), round) !=
      std::end(kRoundsOfHalving))
    take_out_slower_half(first, running(others));
}

/// One round, beginning with another runner each time; false where measuring has to stop.
bool run_round(Sampler& sampler, Runner& first, std::vector<Runner*> left) {
  const int number = sampler.next_round();
  left.insert(left.begin(), &first);
  std::rotate(left.begin(), left.begin() + number % static_cast<std::ptrdiff_t>(left.size()),
              left.end());
  return std::all_of(left.begin(), left.end(),
                     [&](Runner* runner) { return run_once(*runner, number); });
}

Duel state_of(const Runner& first, const Runner& second, double confidence) {
  return {.first_s = estimate_median(first.seconds, confidence),
          .second_s = estimate_median(second.seconds, confidence),
          .ratio = estimate_median(paired_ratios(second.seconds, first.seconds), confidence),
          .first_refusal = first.refusal,
          .second_refusal = second.refusal};
}

}   // namespace

Runner* race(Sampler& sampler, Runner& first, std::vector<Runner>& others) {
  for (int round = 1; round <= kRounds; ++round) {
    const std::vector<Runner*> left = running(others);
    if (left.empty()) return nullptr;
    if (left.size() == 1 && round > kRoundsOfHalving[0]) break;
    if (!run_round(sampler, first, left) || !first.is_running()) return nullptr;
    thin_out(round, first, others);
  }
  std::vector<Runner*> left = running(others);
  sort_by_ratio(first, left);
  return left.empty() ? nullptr : left.front();
}

Duel duel(Sampler& sampler, Runner first, Runner second, const DuelRules& rules) {
  first.seconds.clear();
  second.seconds.clear();
  int looks = 1;
  for (int pairs = kFirstLook; pairs * 2 <= rules.most_pairs; pairs *= 2)
    ++looks;
  const double confidence = 1 - (1 - rules.confidence) / looks;
  const double limit = 1 - rules.least_gain;
  for (int pair = 1, next_look = kFirstLook;; ++pair) {
    const bool goes_on = run_round(sampler, first, {&second});
    const bool is_refused = !first.is_running() || !second.is_running();
    if (goes_on && !is_refused && pair < next_look) continue;
    Duel now = state_of(first, second, confidence);
    if (is_refused) {
      now.end = Duel::End::refused;
    } else if (!goes_on) {
      now.end = Duel::End::stopped;
    } else if (now.ratio.high < limit) {
      now.end = Duel::End::faster;
    } else if (--looks == 0 || now.ratio.low >= limit || now.ratio.median >= 1) {
      now.end = Duel::End::not_faster;
    } else {
      next_look *= 2;
      continue;
    }
    return now;
  }
}

}   // namespace pumice::tune
