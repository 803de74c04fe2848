// One sample at a time, within the budget.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include <pumice/plan/tuner.hpp>

namespace pumice::tune {

/// Seconds, or why there are none. With neither, measuring has to stop.
struct Sample {
  std::optional<double> seconds{};
  std::string refusal{};
};

/// Takes samples until the time is up or the caller cancels, and tells how far everything is.
class Sampler {
 public:
  Sampler(const Measuring& measuring, const Options& options);

  Sample of_group(std::size_t group, const Choice& choice, int round);
  Sample of_network(const Assignment& assignment, int round);

  double used_s() const;
  /// No sample begins later than `seconds` after the start.
  void stop_after(double seconds) { limit_s_ = seconds; }
  /// Whether a sample may be taken now.
  bool goes_on();
  /// Why some sample was not taken; `finished` where all were.
  Stop stopped() const { return stopped_; }
  /// The number of a new round, in which everything runs the same scan.
  int next_round() { return ++round_; }

  void report(double fraction, const std::string& text);

 private:
  Sample take(const std::function<double()>& measure);

  const Measuring& measuring_;
  const Options& options_;
  double began_s_;
  double limit_s_;
  double reported_ = 0;
  int round_ = -1;
  Stop stopped_ = Stop::finished;
};

}   // namespace pumice::tune
