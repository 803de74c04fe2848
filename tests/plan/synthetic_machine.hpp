// A machine whose true times are known, and whose measured ones are as noisy as real ones.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <map>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/plan/tuner.hpp>

namespace pumice::test {

struct Noise {
  double deviation = 0;     // of the logarithm of a time
  double outliers = 0;      // share of samples that take ten times as long
  double drift_per_s = 0;   // relative growth of all times
  double scan_spread = 0;   // scans differ in size by this factor both ways
};

/// The noise that tests share: 3 %, an outlier in 40, 1 % slower every 2 s, scans of 0.6 to 1.4.
inline Noise rough_noise() {
  return {.deviation = 0.03, .outliers = 0.025, .drift_per_s = 0.005, .scan_spread = 0.4};
}

/// True costs: seconds of each candidate of each decision of each group, and of each cut.
class SyntheticMachine {
 public:
  using Costs = std::vector<std::vector<std::vector<double>>>;

  std::vector<tune::Group> groups;
  Costs seconds;
  std::vector<std::map<int, double>> cut_seconds;
  double rest_s = 0;   // of the network, outside all groups
  Noise noise;

  explicit SyntheticMachine(std::uint64_t seed) : random_(seed) {}

  double true_group_s(std::size_t group, const tune::Choice& choice) const {
    double total_s = 0;
    for (std::size_t i = 0; i < choice.size(); ++i)
      total_s += seconds[group][i][choice[i]];
    for (const int cut : tune::cuts_of(groups[group], choice))
      total_s += cut_seconds[group].at(cut);
    return total_s;
  }
  double true_network_s(const tune::Assignment& assignment) const {
    double total_s = rest_s;
    for (std::size_t i = 0; i < groups.size(); ++i)
      total_s += true_group_s(i, assignment[i]);
    return total_s;
  }
  double untuned_s() const { return true_network_s(tune::untuned_assignment(groups)); }

  /// One noisy sample; the clock runs on by it.
  double sample(double true_s, int round) {
    const double scan = 1 + noise.scan_spread * (round % 3 - 1);
    double sample_s = true_s * scan * std::exp(noise.deviation * random_.normal()) *
                      (1 + noise.drift_per_s * now_s_);
    if (random_.uniform() < noise.outliers) sample_s *= 10;
    now_s_ += sample_s;
    longest_s_ = std::max(longest_s_, sample_s);
    ++samples_;
    return sample_s;
  }

  tune::Measuring measuring() {
    return {.group = [this](std::size_t group, const tune::Choice& choice,
                            int round) { return sample(true_group_s(group, choice), round); },
            .network = [this](const tune::Assignment& assignment,
                              int round) { return sample(true_network_s(assignment), round); }};
  }
  tune::Options options(double budget_s = 1e6) {
    tune::Options options;
    options.budget_s = budget_s;
    options.now_s = [this] { return now_s_; };
    return options;
  }

  /// Adds a group of `decisions` with `candidates` each. Candidate 0 is untuned and takes 1 ms, the
  /// others between `fastest` and `slowest` ms. Predictions are 30 % off. No cut costs anything.
  void add_group(std::size_t decisions, std::size_t candidates, double fastest, double slowest) {
    tune::Group& group = groups.emplace_back();
    group.name = "group " + std::to_string(groups.size());
    seconds.emplace_back();
    cut_seconds.emplace_back();
    for (std::size_t i = 0; i < decisions; ++i) {
      tune::Decision& decision = group.decisions.emplace_back();
      decision.name = group.name + " layer " + std::to_string(i + 1);
      std::vector<double>& costs = seconds.back().emplace_back();
      for (std::size_t j = 0; j < candidates; ++j) {
        costs.push_back(1e-3 * (j == 0 ? 1 : random_.uniform(fastest, slowest)));
        decision.candidates.push_back(
            {.name = "candidate " + std::to_string(j),
             .predicted = costs.back() * std::exp(0.3 * random_.normal())});
      }
    }
  }

  /// The least true time of a group over all its choices.
  double best_group_s(std::size_t number) const {
    const tune::Group& group = groups[number];
    tune::Choice choice(group.decisions.size(), 0);
    double best_s = true_group_s(number, tune::untuned_choice(group));
    while (true) {
      if (tune::goes_together(group, choice))
        best_s = std::min(best_s, true_group_s(number, choice));
      std::size_t at = choice.size();
      while (at > 0 && ++choice[at - 1] == group.decisions[at - 1].candidates.size())
        choice[--at] = 0;
      if (at == 0) return best_s;
    }
  }

  double now_s() const { return now_s_; }
  double longest_s() const { return longest_s_; }
  int samples() const { return samples_; }

 private:
  Random random_;
  double now_s_ = 0;
  double longest_s_ = 0;
  int samples_ = 0;
};

}   // namespace pumice::test
