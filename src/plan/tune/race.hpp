// Several ways to do one thing, measured in turns until it is known whether one is faster.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <pumice/plan/tuner.hpp>

#include "plan/tune/sampler.hpp"

namespace pumice::tune {

/// One that runs in turns with others.
struct Runner {
  std::function<Sample(int round)> run;
  std::vector<double> seconds{};   // a sample for each round it took part in
  std::string refusal{};           // why it cannot run
  std::string out{};               // why it was taken out of the race
  int rounds_left_out = 0;         // first samples that are still to be thrown away

  bool is_running() const { return refusal.empty() && out.empty(); }
};

/// Rounds in which everyone left runs once, beside `first`. Those that are clearly slower leave
/// after two rounds, the slower half after 3, 6 and 12 but for two; 20 rounds are the most. The
/// fastest that is left, or none: where time is up, all refused, or `first` is refused.
Runner* race(Sampler& sampler, Runner& first, std::vector<Runner>& others);

struct DuelRules {
  double confidence = 0.99;
  double least_gain = 0;
  int most_pairs = 80;
};

struct Duel {
  enum class End : unsigned char { faster, not_faster, refused, stopped };
  End end = End::stopped;
  Estimate first_s{};
  Estimate second_s{};
  Estimate ratio{};   // second to first, pair by pair
  std::string first_refusal{};
  std::string second_refusal{};
};

/// Whether `second` is faster than `first` by `least_gain`, in new samples: those that made it win
/// a race favour it. Looks at the pairs after 10, 20, 40, … of them; the chance of a mistake is
/// divided among the looks. Stops early where it is not faster.
Duel duel(Sampler& sampler, Runner first, Runner second, const DuelRules& rules);

}   // namespace pumice::tune
