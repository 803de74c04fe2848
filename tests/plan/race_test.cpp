// Who runs in which round, who leaves, and when a comparison ends.
#include "plan/tune/race.hpp"

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

namespace pumice::tune {
namespace {

/// Runners of constant speed, and who ran when.
struct Track {
  std::vector<std::pair<int, std::string>> runs;   // (round, name)
  Measuring measuring;
  Options options;
  double now_s = 0;

  Track() {
    options.now_s = [this] { return now_s; };
    options.budget_s = 1e9;
  }
  Runner runner(const std::string& name, double seconds) {
    return {.run = [this, name, seconds](int round) {
      runs.emplace_back(round, name);
      now_s += seconds;
      return Sample{.seconds = seconds};
    }};
  }
  int runs_of(const std::string& name) const {
    int count = 0;
    for (const auto& run : runs)
      count += run.second == name ? 1 : 0;
    return count;
  }
};

TEST(Race, EveryoneLeftRunsOnceInEachRoundAndNobodyIsAlwaysFirst) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  Runner first = track.runner("first", 1);
  std::vector<Runner> others{track.runner("a", 0.9), track.runner("b", 0.95)};
  const Runner* best = race(sampler, first, others);
  ASSERT_EQ(best, &others[0]);
  std::map<int, std::set<std::string>> rounds;
  std::set<std::string> began;
  for (const auto& [round, name] : track.runs) {
    if (rounds[round].empty()) began.insert(name);
    EXPECT_TRUE(rounds[round].insert(name).second) << name << " twice in round " << round;
  }
  EXPECT_EQ(rounds[0], (std::set<std::string>{"first", "a", "b"}));
  EXPECT_EQ(began.size(), 3u);
}

TEST(Race, ClearLosersLeaveAfterTwoRoundsAndTheSlowerHalfAfterThree) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  Runner first = track.runner("first", 1);
  std::vector<Runner> others{track.runner("slow", 3), track.runner("a", 1.1),
                             track.runner("b", 0.9),  track.runner("c", 1.3),
                             track.runner("d", 0.95), track.runner("e", 1.2)};
  EXPECT_EQ(race(sampler, first, others), &others[2]);
  EXPECT_EQ(track.runs_of("slow"), 2);
  EXPECT_EQ(others[0].out, "clearly slower: 3.00 times the time after 2 rounds");
  EXPECT_EQ(track.runs_of("c"), 3);
  EXPECT_EQ(track.runs_of("e"), 3);
  EXPECT_EQ(track.runs_of("a"), 6);
  EXPECT_EQ(track.runs_of("d"), 20);
  EXPECT_EQ(track.runs_of("first"), 20);
}

TEST(Race, FirstSamplesAreThrownAway) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  Runner first = track.runner("first", 1);
  int calls = 0;
  std::vector<Runner> others(1);
  others[0].run = [&](int) { return Sample{.seconds = ++calls == 1 ? 100 : 0.5}; };
  others[0].rounds_left_out = 1;
  EXPECT_EQ(race(sampler, first, others), &others[0]);
  EXPECT_EQ(others[0].seconds.front(), 0.5);
}

TEST(Race, NobodyWinsWhereTheFirstIsRefused) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  Runner first{.run = [](int) { return Sample{.refusal = "no memory"}; }};
  std::vector<Runner> others{track.runner("a", 1)};
  EXPECT_EQ(race(sampler, first, others), nullptr);
  EXPECT_EQ(first.refusal, "no memory");
}

TEST(Duel, EndsAsSoonAsItIsKnown) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  const Duel faster = duel(sampler, track.runner("a", 1), track.runner("b", 0.9), {});
  EXPECT_EQ(faster.end, Duel::End::faster);
  EXPECT_EQ(faster.ratio.samples, 10);
  EXPECT_EQ(faster.ratio.high, 0.9);
  const Duel equal = duel(sampler, track.runner("a", 1), track.runner("b", 1), {});
  EXPECT_EQ(equal.end, Duel::End::not_faster);
  EXPECT_EQ(equal.ratio.samples, 10);
}

TEST(Duel, AGainBelowTheLeastIsNone) {
  Track track;
  Sampler sampler(track.measuring, track.options);
  const DuelRules rules{.least_gain = 0.02};
  EXPECT_EQ(duel(sampler, track.runner("a", 1), track.runner("b", 0.99), rules).end,
            Duel::End::not_faster);
  EXPECT_EQ(duel(sampler, track.runner("a", 1), track.runner("b", 0.97), rules).end,
            Duel::End::faster);
}

/// The chance that a tie is taken for a gain is half of what the confidence leaves, over all looks
/// together: 0.5 %, of 4,000 comparisons 20. Their number is Poisson-distributed: 38 is four
/// standard deviations away.
TEST(Duel, TiesAreSeldomTakenForGains) {
  int mistakes = 0;
  for (std::uint64_t seed = 0; seed < 4000; ++seed) {
    Track track;
    Sampler sampler(track.measuring, track.options);
    Random random(seed);
    const Runner noisy{
        .run = [&](int) { return Sample{.seconds = std::exp(0.05 * random.normal())}; }};
    mistakes += duel(sampler, noisy, noisy, {}).end == Duel::End::faster ? 1 : 0;
  }
  EXPECT_LE(mistakes, 38);
}

TEST(Duel, SaysThatItWasStopped) {
  Track track;
  track.options.budget_s = 7.5;
  Sampler sampler(track.measuring, track.options);
  const auto timed = [&](double seconds) {
    return Runner{.run = [&, seconds](int) {
      if (!sampler.goes_on()) return Sample{};
      track.now_s += seconds;
      return Sample{.seconds = seconds};
    }};
  };
  const Duel found = duel(sampler, timed(1), timed(0.5), {});
  EXPECT_EQ(found.end, Duel::End::stopped);
  EXPECT_EQ(found.ratio.samples, 5);
}

}   // namespace
}   // namespace pumice::tune
