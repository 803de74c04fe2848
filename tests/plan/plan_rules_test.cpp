// Which bucket a number is in, and which plan answers.
#include "plan/store/plan_rules.hpp"

#include <cstddef>
#include <limits>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "plan/stored_plans.hpp"
#include "support/message_of.hpp"

namespace pumice::tune {
namespace {

using test::key_of;
using test::message_of;
using test::record_of;

TEST(PlanRules, BucketsAreHalfOctaves) {
  EXPECT_EQ(rows_bucket(0), 0);
  EXPECT_EQ(rows_bucket(1), 0);
  EXPECT_EQ(rows_bucket(2), 2);
  EXPECT_EQ(rows_bucket(3), 3);
  EXPECT_EQ(rows_bucket(65536), 32);
  EXPECT_EQ(rows_bucket(65537), 32);
  EXPECT_EQ(rows_bucket(91767), 33);
  EXPECT_EQ(rows_bucket(std::numeric_limits<std::int64_t>::max()), 126);
  EXPECT_EQ(density_bucket(1), 0);
  EXPECT_EQ(density_bucket(27), 10);
  EXPECT_EQ(density_bucket(0.5), -2);
  EXPECT_EQ(density_bucket(0), -8);
  EXPECT_EQ(density_bucket(1e-9), -8);
  EXPECT_NE(message_of([] {
              density_bucket(std::numeric_limits<double>::quiet_NaN());
            }).find("pairs_per_row = nan"),
            std::string::npos);
}

struct There {
  int rows;
  std::optional<int> density;
  std::int64_t measured_ms = 1;
};

/// The index of the plan that answers, or -1.
int answer(int rows, std::optional<int> density, const std::vector<There>& there) {
  std::vector<StoredPlan> plans;
  for (std::size_t i = 0; i < there.size(); ++i) {
    StoredPlan plan{.key = key_of("p", there[i].rows),
                    .record = record_of(std::to_string(i), there[i].measured_ms)};
    plan.key.density_bucket = there[i].density;
    plans.push_back(plan);
  }
  PlanKey key = key_of("p", rows);
  key.density_bucket = density;
  const auto found = nearest(key, plans);
  return found ? std::stoi(found->record.plan) : -1;
}

TEST(PlanRules, TheNearestRowsAnswer) {
  EXPECT_EQ(answer(30, {}, {{28, {}}, {31, {}}, {33, {}}}), 1);
  EXPECT_EQ(answer(30, {}, {{29, {}}, {31, {}}}), 1);   // the larger of two as near
  EXPECT_EQ(answer(30, {}, {{34, {}}}), 0);
  EXPECT_EQ(answer(30, {}, {{35, {}}, {25, {}}}), -1);   // more than a factor of 4 away
  EXPECT_EQ(answer(30, {}, {}), -1);
}

TEST(PlanRules, WithADensityTheNearestDensityOfThoseRowsAnswers) {
  EXPECT_EQ(answer(30, 5, {{30, 9}, {30, 6, 1}, {30, 4, 2}, {31, 5}}),
            2);   // the newer of two as near
  EXPECT_EQ(answer(30, 5, {{30, {}}, {30, 4}}), 1);
  EXPECT_EQ(answer(30, 5, {{30, {}}, {30, 8}}), 0);   // unknown is as far as 2 half octaves
  EXPECT_EQ(answer(30, 5, {{30, 10}, {31, 5}}), 1);   // 5 half octaves away is no answer
}

TEST(PlanRules, WithoutADensityPlansWithoutOneComeFirst) {
  EXPECT_EQ(answer(30, {}, {{30, 3}, {30, {}}, {30, 9}}), 1);
  EXPECT_EQ(answer(30, {}, {{30, 3, 5}, {30, 9, 7}}), 1);   // then the one measured last
}

TEST(PlanRules, SaysWhatIsWrongWithAKeyOrARecord) {
  EXPECT_EQ(problem_of(key_of("p")), "");
  EXPECT_EQ(problem_of(record_of("p")), "");
  EXPECT_EQ(problem_of(key_of("")), "problem is empty; give a text");
  EXPECT_EQ(problem_of(key_of("a\nb")), "problem = \"a\\nb\": give printable ASCII");
  EXPECT_EQ(problem_of(key_of("p", -1)), "rows_bucket = -1: take what rows_bucket() gives");
  EXPECT_EQ(problem_of(key_of(std::string(5000, 'x'))),
            "problem has 5000 letters; give at most 4096");
  PlanRecord record = record_of("p");
  record.tuned_s = 0;
  EXPECT_EQ(problem_of(record), "tuned_s = 0: give a positive number of seconds");
  record = record_of("p");
  record.confidence = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(problem_of(record), "confidence = nan: it lies between 0 and 1");
  record = record_of("p", -5);
  EXPECT_EQ(problem_of(record), "measured_ms = -5: give milliseconds since 1970");
}

}   // namespace
}   // namespace pumice::tune
