// Sentences of the reports, in one place.
#include "plan/tune/sentences.hpp"

#include <pumice/core/error.hpp>

#include <fmt/format.h>

namespace pumice::tune {

std::string name_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::untuned: return "untuned";
    case Verdict::accepted: return "accepted";
    case Verdict::slower: return "slower";
    case Verdict::within_noise: return "within noise";
    case Verdict::dropped: return "dropped";
    case Verdict::refused: return "refused";
    case Verdict::not_measured: return "not measured";
  }
  PUMICE_ENSURES(false, "verdict ", static_cast<int>(verdict));
  return {};
}

std::string words_of(const Estimate& ratio) {
  return fmt::format(
      "{:.3f} times the time ({:.3f} to {:.3f} with a confidence of {:.1f} %, {} pairs)",
      ratio.median, ratio.low, ratio.high, 100 * ratio.confidence, ratio.samples);
}

std::string words_of_seconds(double seconds) {
  return seconds < 1 ? fmt::format("{:.3g} ms", 1000 * seconds) : fmt::format("{:.3g} s", seconds);
}

std::string reason_of(Stop stop) {
  switch (stop) {
    case Stop::finished: return "it was not tried";
    case Stop::out_of_budget: return "the budget ended before it was measured";
    case Stop::cancelled: return "tuning was cancelled before it was measured";
  }
  PUMICE_ENSURES(false, "stop ", static_cast<int>(stop));
  return {};
}

void take_back(GroupReport& report, Verdict verdict, const std::string& reason) {
  const auto change = [&](CandidateReport& candidate) {
    if (candidate.verdict != Verdict::accepted) return;
    candidate.verdict = verdict;
    candidate.reason += "; taken back: " + reason;
  };
  for (CandidateReport& choice : report.choices)
    change(choice);
  for (DecisionReport& decision : report.decisions) {
    for (CandidateReport& candidate : decision.candidates)
      change(candidate);
  }
  report.verdict = verdict;
  report.reason = reason;
}

void finish_decisions(GroupReport& report, const Choice& choice, const std::string& not_measured) {
  for (CandidateReport& whole : report.choices) {
    if (whole.reason.empty()) whole.reason = not_measured;
  }
  for (std::size_t i = 0; i < report.decisions.size(); ++i) {
    DecisionReport& decision = report.decisions[i];
    decision.chosen = choice[i];
    decision.reason = report.reason;
    for (std::size_t j = 0; j < decision.candidates.size(); ++j) {
      CandidateReport& candidate = decision.candidates[j];
      const bool was_measured = candidate.verdict != Verdict::not_measured;
      if (j == decision.untuned && !was_measured) {
        candidate.verdict = Verdict::untuned;
        candidate.reason = "it would run untuned";
      } else if (j == choice[i] && candidate.verdict != Verdict::accepted &&
                 j != decision.untuned) {
        candidate.verdict = Verdict::accepted;
        candidate.reason = "taken together with other decisions of its group";
      }
      if (candidate.reason.empty()) candidate.reason = not_measured;
    }
  }
}

}   // namespace pumice::tune
