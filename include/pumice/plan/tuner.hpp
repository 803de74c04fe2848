// From candidates and a stopwatch to the choice that is fastest on this machine, or none.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace pumice::tune {

/// Needs no cut of the structure.
constexpr int kNoCut = -1;

/// One way to run a decision.
struct Candidate {
  std::string name;
  double predicted = 0;   // its cost in seconds or no unit: what costs less is measured earlier
  int cut = kNoCut;       // which cut of the group's structure it needs, a number of the caller
};

/// One layer in one direction. `untuned` is the candidate that would run without tuning.
struct Decision {
  std::string name;
  std::vector<Candidate> candidates;
  std::size_t untuned = 0;
};

/// What a group's decisions share, as a tile height with a number of splits: the cuts that may be
/// used together. An input gradient that mirrors the forward pass's cut has the same number; a
/// weight gradient needs its own, so a setting for training lists both.
struct Setting {
  std::string name;
  std::vector<int> cuts;
};

/// Decisions of layers on one structure. Each distinct cut that they use is made once, however many
/// use it. All cuts of a choice must be in one setting; without settings everything goes together,
/// and the untuned choice is always allowed.
struct Group {
  std::string name;
  std::vector<Decision> decisions;
  std::vector<Setting> settings{};
};

/// A candidate's index for each decision of a group, and such a choice for each group.
using Choice = std::vector<std::size_t>;
using Assignment = std::vector<Choice>;

Choice untuned_choice(const Group& group);
Assignment untuned_assignment(const std::vector<Group>& groups);
/// The distinct cuts that `choice` needs, in ascending order.
std::vector<int> cuts_of(const Group& group, const Choice& choice);
/// Whether some setting has all cuts of `choice`.
bool goes_together(const Group& group, const Choice& choice);

/// The stopwatch. Each call takes one sample in seconds; calls with the same `round` are compared
/// with each other and must run the same of several scans, as `scans[round % scans.size()]`. What
/// throws or gives no positive number is refused, with its sentence, and tuning goes on.
struct Measuring {
  /// One group's decisions in sequence, and the cuts that they need.
  std::function<double(std::size_t group, const Choice& choice, int round)> group;
  /// The whole network.
  std::function<double(const Assignment& assignment, int round)> network;
};

struct Options {
  double budget_s = 60;       // a quarter of it is kept for the comparison from end to end
  double confidence = 0.99;   // of the interval that decides whether something is faster
  double least_gain = 0.01;   // a group's choice that gains less is not worth being another one
  int most_candidates = 12;   // that one decision may try, those predicted to cost least
  int most_pairs = 80;        // that one comparison may take, at least 10
  int warmups = 1;            // first samples of a choice that are thrown away
  std::size_t most_choices = 512;         // of a group, for tune_exhaustively
  std::function<double()> now_s{};        // a steady clock where there is none
  std::function<bool()> is_cancelled{};   // asked before every sample
  /// A fraction from 0 to 1 that never falls, and what is being done.
  std::function<void(double fraction, const std::string& text)> progress{};
};

/// A median, and an interval that holds the true one with at least `confidence`, whatever the
/// distribution is: order statistics of the samples, as a sign test has them. Few samples allow
/// less confidence than was asked for; without samples everything is 0.
struct Estimate {
  double median = 0;
  double low = 0;
  double high = 0;
  double confidence = 0;
  int samples = 0;
};

enum class Verdict : unsigned char {
  untuned,        // what would run anyway
  accepted,       // faster with confidence, and taken
  slower,         // measured, and not the fastest
  within_noise,   // the fastest measured, but not faster with confidence
  dropped,        // faster by itself, but the network was not with it
  refused,        // could not be measured
  not_measured,
};

/// Text such as "within noise".
std::string name_of(Verdict verdict);

struct CandidateReport {
  std::string name;
  double predicted = 0;
  Estimate seconds{};   // of the whole group with it
  Estimate ratio{};     // to the choice that it was measured beside, pair by pair
  Verdict verdict = Verdict::not_measured;
  std::string reason{};   // one sentence
};

struct DecisionReport {
  std::string name;
  std::size_t untuned = 0;
  std::size_t chosen = 0;
  std::vector<CandidateReport> candidates{};
  std::string reason{};
};

struct GroupReport {
  std::string name;
  double share = 0;       // of the untuned time of all groups that could be measured
  Estimate untuned_s{};   // both measured in turns
  Estimate tuned_s{};
  Estimate ratio{};   // tuned to untuned, pair by pair
  Verdict verdict = Verdict::not_measured;
  std::string reason{};
  /// Choices of the whole group that were proposed at once: one for each setting, or all of them in
  /// an exhaustive search.
  std::vector<CandidateReport> choices{};
  std::vector<DecisionReport> decisions{};
};

enum class Stop : unsigned char { finished, out_of_budget, cancelled };

struct Result {
  Assignment assignment;
  std::vector<GroupReport> groups;
  /// End to end, measured in turns, for the assignment above; without samples where that is the
  /// untuned one.
  Estimate untuned_s{};
  Estimate tuned_s{};
  Estimate ratio{};
  Stop stop = Stop::finished;
  double used_s = 0;
  std::string summary{};   // one or two sentences; they say what was not measured
};

/// Groups one after the other, the one with the largest share of the time first. In a group the
/// settings are tried, each with the candidates that are predicted to cost least, then the
/// candidates of one decision after the other. A choice is taken when it is faster with confidence
/// than the one it would replace; at the end the network is measured tuned beside untuned, and
/// groups whose gain is least certain are dropped until it is faster. Where the budget ends, the
/// result has what was accepted until then, if the network could still be measured with it;
/// cancelled, it is untuned unless a comparison from end to end had succeeded.
///
/// Two changes that only pay together, such as two decisions that have to leave a cut at the same
/// time where no setting proposes it, are not found. UserError for impossible arguments.
Result tune_greedily(const std::vector<Group>& groups, const Measuring& measuring,
                     const Options& options = {});

/// The same, trying all choices of each group. UserError where a group has more than
/// `most_choices`.
Result tune_exhaustively(const std::vector<Group>& groups, const Measuring& measuring,
                         const Options& options = {});

}   // namespace pumice::tune
