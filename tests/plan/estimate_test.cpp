// Intervals of medians hold the true one as often as they say.
#include "plan/tune/estimate.hpp"

#include <cmath>

#include <gtest/gtest.h>

#include <pumice/core/random.hpp>

namespace pumice::tune {
namespace {

TEST(Estimate, OfNothingIsNothing) {
  const Estimate none = estimate_median({}, 0.99);
  EXPECT_EQ(none.samples, 0);
  EXPECT_EQ(none.confidence, 0);
}

TEST(Estimate, FewSamplesAllowLittleConfidence) {
  const Estimate one = estimate_median({3}, 0.99);
  EXPECT_EQ(one.low, 3);
  EXPECT_EQ(one.confidence, 0);   // the true median is on one side of it
  const Estimate three = estimate_median({3, 1, 2}, 0.99);
  EXPECT_EQ(three.median, 2);
  EXPECT_EQ(three.low, 1);
  EXPECT_EQ(three.high, 3);
  EXPECT_NEAR(three.confidence, 0.75, 1e-12);
}

/// From tables of the sign test.
TEST(Estimate, TakesTheOrderStatisticsOfASignTest) {
  std::vector<double> samples;
  for (int i = 1; i <= 20; ++i)
    samples.push_back(i);
  const Estimate twenty = estimate_median(samples, 0.95);
  EXPECT_EQ(twenty.low, 6);
  EXPECT_EQ(twenty.high, 15);
  EXPECT_NEAR(twenty.confidence, 0.9586, 1e-4);
  EXPECT_NEAR(coin_tail(20, 5), 0.0207, 1e-4);
  EXPECT_NEAR(coin_tail(20, 20), 1, 1e-12);
}

/// Skewed ones, and one without a mean.
TEST(Estimate, HoldsTheTrueMedianOfAnyDistribution) {
  struct Case {
    const char* name;
    double median;
    double (*draw)(Random&);
  };
  const Case cases[] = {
      {"log-normal", 1, [](Random& random) { return std::exp(random.normal()); }},
      {"exponential", std::log(2), [](Random& random) { return -std::log(1 - random.uniform()); }},
      {"half Cauchy", 1, [](Random& random) { return std::tan(1.5707 * random.uniform()); }}};
  constexpr int kTrials = 4000;
  for (const Case& each : cases) {
    for (const int samples : {10, 20, 40}) {
      int held = 0;
      for (int trial = 0; trial < kTrials; ++trial) {
        Random random(static_cast<std::uint64_t>(samples), static_cast<std::uint64_t>(trial));
        std::vector<double> values;
        for (int i = 0; i < samples; ++i)
          values.push_back(each.draw(random));
        const Estimate estimate = estimate_median(values, 0.95);
        held += estimate.low <= each.median && each.median <= estimate.high ? 1 : 0;
      }
      EXPECT_GE(held, kTrials * 0.95) << each.name << ", " << samples;
      EXPECT_LE(held, kTrials * 0.99) << each.name << ", " << samples;   // no wider than needed
    }
  }
}

TEST(Estimate, OutliersOfTenTimesMoveItNoMoreThanOtherSamples) {
  std::vector<double> calm(21, 1.0);
  for (std::size_t i = 0; i < calm.size(); ++i)
    calm[i] += 0.001 * static_cast<double>(i);
  std::vector<double> rough = calm;
  rough[20] *= 10;
  rough[19] *= 1000;
  EXPECT_EQ(estimate_median(rough, 0.95).high, estimate_median(calm, 0.95).high);
  EXPECT_EQ(median_of(rough), median_of(calm));
}

TEST(Estimate, PairsAsManyAsBothHave) {
  EXPECT_EQ(paired_ratios({2, 9, 4}, {1, 3}), (std::vector<double>{2, 3}));
}

}   // namespace
}   // namespace pumice::tune
