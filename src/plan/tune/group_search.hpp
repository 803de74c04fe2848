// Which choice one group should have.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include <pumice/plan/tuner.hpp>

#include "plan/tune/race.hpp"
#include "plan/tune/sampler.hpp"

namespace pumice::tune {

/// Starts from the untuned choice, and takes another one in its place each time that one has shown
/// to be faster.
class GroupSearch {
 public:
  /// Told which part of the search is done, from 0 to 1, and what comes next.
  using Progress = std::function<void(double, const std::string&)>;

  GroupSearch(Sampler& sampler, const Group& group, std::size_t number, const Options& options,
              GroupReport& report, Progress progress);

  void greedy();
  void exhaustive();

  const Choice& choice() const { return choice_; }

 private:
  struct Proposal {
    Choice choice;
    CandidateReport* report;
  };

  void try_settings();
  void try_decision(std::size_t number);
  /// Measures `proposals`, at most `most` of them, beside the present choice, and takes the best
  /// one if it is faster.
  void step(std::vector<Proposal> proposals, std::size_t most);
  void settle(const Proposal& best);
  /// Beside the untuned choice, where more than one step led away from it.
  void compare_with_untuned();
  void conclude();
  void fall_back(Verdict verdict, const std::string& reason);
  Runner runner_of(const Choice& choice) const;
  Duel duel_between(const Choice& first, const Choice& second) const;

  Sampler& sampler_;
  const Group& group_;
  std::size_t number_;
  const Options& options_;
  GroupReport& report_;
  Progress progress_;
  Choice choice_;
  int steps_ = 0;          // that were taken
  bool gave_up_ = false;   // the present choice could not be measured
};

}   // namespace pumice::tune
