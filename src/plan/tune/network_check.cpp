// Bisects the groups, in the order of the seconds that each one gains for certain.
#include "plan/tune/network_check.hpp"

#include <algorithm>
#include <bit>
#include <string>

#include "plan/tune/race.hpp"
#include "plan/tune/sentences.hpp"

#include <fmt/format.h>

namespace pumice::tune {
namespace {

class NetworkCheck {
 public:
  NetworkCheck(Sampler& sampler, const std::vector<Group>& groups, const Assignment& tuned,
               const Options& options, Result& result)
      : sampler_(sampler),
        options_(options),
        result_(result),
        untuned_(untuned_assignment(groups)),
        tuned_(tuned) {
    for (std::size_t i = 0; i < groups.size(); ++i) {
      if (tuned_[i] != untuned_[i]) order_.push_back(i);
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) {
      return certain_gain_s(a) > certain_gain_s(b);
    });
    // The search halves what is left: so many comparisons share the chance of a mistake.
    most_duels_ = 1 + static_cast<int>(std::bit_width(order_.size()));
  }

  void run() {
    result_.assignment = untuned_;
    std::size_t kept = 0;                     // of order_: faster with so many
    std::size_t failed = order_.size() + 1;   // not faster with so many
    while (kept + 1 < failed) {
      // All of them first.
      const std::size_t tried = failed > order_.size() ? order_.size() : (kept + failed) / 2;
      if (is_faster(tried)) {
        kept = tried;
      } else {
        failed = tried;
      }
      if (!why_stopped_.empty()) break;
    }
    // What was never compared says nothing against a group.
    const Verdict verdict = is_cut_short_ ? Verdict::not_measured : Verdict::dropped;
    for (std::size_t i = kept; i < order_.size(); ++i)
      take_back(result_.groups[order_[i]], verdict, why_dropped());
  }

 private:
  double certain_gain_s(std::size_t group) const {
    const GroupReport& report = result_.groups[group];
    return report.untuned_s.median * (1 - report.ratio.high);
  }

  Assignment with(std::size_t kept) const {
    Assignment assignment = untuned_;
    for (std::size_t i = 0; i < kept; ++i)
      assignment[order_[i]] = tuned_[order_[i]];
    return assignment;
  }

  Runner runner_of(const Assignment& assignment) {
    return {.run = [this, assignment](int round) { return sampler_.of_network(assignment, round); },
            .rounds_left_out = options_.warmups};
  }

  bool is_faster(std::size_t kept) {
    sampler_.report(0.8 + 0.2 * duels_ / most_duels_,
                    fmt::format("the network with {} tuned groups beside the untuned one", kept));
    ++duels_;
    const Assignment assignment = with(kept);
    const Duel found = duel(sampler_, runner_of(untuned_), runner_of(assignment),
                            {.confidence = 1 - (1 - options_.confidence) / most_duels_,
                             .least_gain = 0,
                             .most_pairs = options_.most_pairs});
    if (found.end == Duel::End::faster) {
      result_.assignment = assignment;
      result_.untuned_s = found.first_s;
      result_.tuned_s = found.second_s;
      result_.ratio = found.ratio;
      return true;
    }
    if (found.end == Duel::End::not_faster) why_not_ = words_of(found.ratio);
    if (found.end == Duel::End::refused) why_not_ = found.second_refusal;
    // Untuned, it can never be compared.
    if (!found.first_refusal.empty())
      why_stopped_ = "the untuned network could not be measured: " + found.first_refusal;
    if (found.end == Duel::End::stopped) {
      is_cut_short_ = true;
      why_stopped_ = sampler_.stopped() == Stop::cancelled
                         ? "tuning was cancelled before the network was measured with it"
                         : "the budget ended before the network was measured with it";
    }
    return false;
  }

  std::string why_dropped() const {
    if (!why_stopped_.empty()) return why_stopped_;
    return "the network is not faster with it, from end to end: " + why_not_;
  }

  Sampler& sampler_;
  const Options& options_;
  Result& result_;
  Assignment untuned_;
  Assignment tuned_;
  std::vector<std::size_t> order_;
  int most_duels_ = 1;
  int duels_ = 0;
  std::string why_not_;
  std::string why_stopped_;
  bool is_cut_short_ = false;
};

}   // namespace

void check_network(Sampler& sampler, const std::vector<Group>& groups, const Assignment& tuned,
                   const Options& options, Result& result) {
  NetworkCheck(sampler, groups, tuned, options, result).run();
}

}   // namespace pumice::tune
