// Rules, candidates and checks of sparse products, and what was measured before.
// Covers choose_sparse, check_sparse, explain_sparse, sparse_memo, space/sparse and
// space/entry_schedules.
#include <pumice/plan/choose_sparse.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <pumice/shared/pattern_ref.h>
#include <pumice/shared/tile_limits.h>
#include <pumice/plan/choose.hpp>
#include <pumice/plan/plan_book.hpp>

#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::test {
namespace {

/// So many rows of a length, and one longer row.
SparseProblem some_product(std::int64_t rows = 10'000, std::int64_t length = 7,
                           std::int64_t longest = 400) {
  auto lengths = std::make_shared<RowLengths>();
  lengths->rows[length_bucket(length)] = rows - 1;
  lengths->rows[length_bucket(longest)] += 1;
  lengths->longest = longest;
  return {.rows = rows,
          .columns = rows,
          .entries = (rows - 1) * length + longest,
          .channels = 128,
          .weighted = true,
          .lengths = lengths};
}

const Target& cpu() {
  return target_of(Device{});
}

Target hopper() {
  Target target = usual_target(kSm90a);
  target.name = "NVIDIA H100";
  return target;
}

SparseProblem with(SparseProblem problem, SparseOperator op, SparseDirection direction) {
  problem.op = op;
  problem.direction = direction;
  return problem;
}

std::vector<SparseProblem> every_kind() {
  std::vector<SparseProblem> all;
  for (const SparseProblem& of : {some_product(), some_product(40, 3, 4), some_product(1, 0, 0)}) {
    all.push_back(of);
    all.push_back(with(of, SparseOperator::spmm, SparseDirection::features_gradient));
    all.push_back(with(of, SparseOperator::spmm, SparseDirection::values_gradient));
    all.push_back(with(of, SparseOperator::sddmm, SparseDirection::forward));
    all.push_back(with(of, SparseOperator::edge_scores, SparseDirection::forward));
    SparseProblem other = of;
    other.lengths = nullptr;
    other.reduction = EntryReduction::max;
    other.channels = 3;
    other.dtype = DType::bf16;
    all.push_back(other);
    all.push_back(with(other, SparseOperator::spmm, SparseDirection::features_gradient));
  }
  return all;
}

TEST(ChooseSparse, candidates_begin_with_the_rules_plan_and_all_of_them_fit) {
  for (const Target& target : {cpu(), hopper()}) {
    for (const SparseProblem& problem : every_kind()) {
      SCOPED_TRACE(to_text(problem));
      const std::vector<SparseCandidate> all = candidates(problem, target);
      ASSERT_GE(all.size(), 2u);
      EXPECT_LE(all.size(), kMostCandidates);
      EXPECT_TRUE(all.front().plan.runs_like(*choose_by_rules(problem, target)));
      EXPECT_EQ(all.front().cost, 1);
      std::set<std::string> names;
      double before = 0;
      for (const SparseCandidate& one : all) {
        EXPECT_TRUE(names.insert(one.plan.name()).second) << one.plan.name();
        EXPECT_NO_THROW(check(one.plan, problem, target)) << one.plan.name();
        EXPECT_TRUE(parse_sparse_plan(to_text(one.plan)).runs_like(one.plan));
        EXPECT_FALSE(one.plan.reason.empty());
        EXPECT_GT(one.cost, 0);
        if (&one != &all.front()) {
          EXPECT_GE(one.cost, before);
          before = one.cost;
        }
      }
    }
  }
}

TEST(ChooseSparse, rules_of_a_device_go_by_channels_and_size) {
  const auto teams = [](std::int64_t rows, std::int64_t channels, DType dtype) {
    SparseProblem problem = some_product(rows);
    problem.channels = channels;
    problem.dtype = dtype;
    return *choose_by_rules(problem, hopper())->teams;
  };
  EXPECT_EQ(teams(10'000, 32, DType::f32).team, 8);
  EXPECT_EQ(teams(10'000, 32, DType::f16).team, 4);
  EXPECT_EQ(teams(10'000, 512, DType::f32).team, 32);
  EXPECT_EQ(teams(10'000, 3, DType::f32).ahead, 2) << "rows that are no whole 16 bytes";
  // Of 0.2, 1.3 and 11.4 million rows and entries 2 to 4, 8 and 16 to 32 units were the fastest.
  EXPECT_GE(teams(1'400'000, 128, DType::f32).units, 16);
  EXPECT_LE(teams(25'000, 128, DType::f32).units, 4);
  EXPECT_EQ(teams(25'000, 128, DType::f32).part_teams, 32);
  // Lengths of rows are looked at by predictions alone.
  SparseProblem counted = some_product(), uncounted = some_product();
  uncounted.lengths = nullptr;
  EXPECT_TRUE(choose_by_rules(counted, hopper())->runs_like(*choose_by_rules(uncounted, hopper())));
}

TEST(ChooseSparse, rules_take_whole_warps_for_what_was_measured) {
  // Rows and entries of ca-CondMat, FB15k-237 and a power law, and schedules that were within 8 %
  // of the fastest on an H200, or the lowest and highest of them.
  struct Size {
    std::int64_t rows, entries;
  };
  constexpr Size kMatrix{23'133, 186'936}, kTriples{14'541, 246'236}, kPowerLaw{169'343, 1'156'280};
  struct Expected {
    DType dtype;
    std::int64_t channels;
    std::string name;
    std::int32_t small_least, small_most, large_least, large_most;   // units
  };
  const Expected all[] = {{DType::f32, 32, "w4_t8x1_n4", 2, 4, 10, 24},
                          {DType::f32, 128, "w1_t32x1_n4", 2, 4, 10, 24},
                          {DType::f32, 512, "w1_t32x1_n4", 4, 9, 12, 24},
                          {DType::f16, 32, "w8_t4x1_n2", 2, 4, 10, 24},
                          {DType::f16, 128, "w2_t16x1_n4", 2, 4, 10, 24},
                          {DType::f16, 512, "w1_t32x1_n4", 4, 9, 12, 24}};
  for (const Expected& one : all) {
    for (const Size& size : {kMatrix, kTriples, kPowerLaw}) {
      SCOPED_TRACE(one.name + ", " + std::to_string(size.rows) + " rows");
      const SparseProblem problem{.rows = size.rows,
                                  .columns = size.rows,
                                  .entries = size.entries,
                                  .channels = one.channels,
                                  .dtype = one.dtype,
                                  .weighted = true};
      const TeamSchedule teams = *choose_by_rules(problem, hopper())->teams;
      EXPECT_EQ(teams.name(), one.name);
      const bool is_large = size.rows == kPowerLaw.rows;
      EXPECT_GE(teams.units, is_large ? one.large_least : one.small_least);
      EXPECT_LE(teams.units, is_large ? one.large_most : one.small_most);
    }
  }
  // The others go by teams, and may be measured.
  const auto ways = [](SparseProblem problem) {
    return choose_by_rules(problem, hopper())->teams->ways;
  };
  SparseProblem problem = some_product();
  problem.weighted = false;
  EXPECT_EQ(ways(problem), 1) << "without weights";
  problem.reduction = EntryReduction::mean;
  EXPECT_EQ(ways(problem), 1);
  EXPECT_EQ(ways(with(problem, SparseOperator::spmm, SparseDirection::features_gradient)), 0);
  problem.reduction = EntryReduction::max;
  EXPECT_EQ(ways(problem), 0);
  problem = some_product();
  EXPECT_EQ(ways(with(problem, SparseOperator::spmm, SparseDirection::features_gradient)), 1);
  EXPECT_EQ(ways(with(problem, SparseOperator::sddmm, SparseDirection::forward)), 0);
  problem.channels = 8;
  EXPECT_EQ(ways(problem), 0) << "teams of two threads";
  problem = some_product();
  problem.heads = 4;
  EXPECT_EQ(ways(problem), 0);
  bool may_go_by_warps = false;
  for (const SparseCandidate& one : candidates(problem, hopper()))
    may_go_by_warps |= one.plan.teams->ways == 1;
  EXPECT_TRUE(may_go_by_warps);
  // Half precision by heads has no registers for eight rows of each team.
  problem.dtype = DType::f16;
  SparsePlan plan = *choose_by_rules(problem, hopper());
  plan.teams->ways = 2;
  plan.teams->ahead = 8;
  EXPECT_NE(message_of([&] { check(plan, problem, hopper()); }).find("than registers hold"),
            std::string::npos);
}

/// The predicted cost of a plan among candidates; -1: it is none.
double cost_of(const SparseProblem& problem, const Target& target, const std::string& name) {
  for (const SparseCandidate& one : candidates(problem, target)) {
    if (one.plan.name().starts_with(name)) return one.cost;
  }
  return -1;
}

TEST(ChooseSparse, predictions_go_by_the_histogram) {
  // Rows of one length fill lines; one long row among short ones does not.
  const double even = cost_of(some_product(10'000, 8, 8), cpu(), "ell(8)");
  const double uneven = cost_of(some_product(10'000, 5, 60'000), cpu(), "ell(16)");
  EXPECT_GT(even, 1);
  EXPECT_GT(uneven, even);
  EXPECT_GT(cost_of(some_product(), cpu(), "hyb(2"), cost_of(some_product(), cpu(), "hyb(1"));
  // What is nearly all padding is no candidate.
  SparseProblem sparse = some_product(100'000, 1, 1);
  sparse.entries = 100;
  EXPECT_LT(cost_of(sparse, cpu(), "ell"), 0);
  // Of a gradient of max nothing is cut.
  SparseProblem picked =
      with(some_product(), SparseOperator::spmm, SparseDirection::features_gradient);
  EXPECT_GT(cost_of(picked, cpu(), "hyb"), 0);
  picked.reduction = EntryReduction::max;
  EXPECT_LT(cost_of(picked, cpu(), "hyb"), 0);
}

SparseProblem some_mean() {
  SparseProblem problem = some_product();
  problem.reduction = EntryReduction::mean;
  return problem;
}

TEST(ChooseSparse, formats_are_candidates_on_a_device_and_never_the_rules) {
  for (const std::int64_t channels : {32, 512}) {
    for (SparseProblem problem :
         {some_product(), with(some_product(), SparseOperator::sddmm, SparseDirection::forward)}) {
      problem.channels = channels;
      const std::vector<SparseCandidate> all = candidates(problem, hopper());
      EXPECT_LE(all.size(), kMostCandidates);
      EXPECT_EQ(all.front().plan.format, SparseFormat::csr);
      for (const SparseFormat format : {SparseFormat::ell, SparseFormat::hyb})
        EXPECT_TRUE(std::ranges::any_of(
            all, [&](const SparseCandidate& one) { return one.plan.format == format; }))
            << name_of(format) << " of " << to_text(problem);
      for (const SparseCandidate& one : all)
        EXPECT_NO_THROW(check(one.plan, problem, hopper())) << one.plan.name();
      EXPECT_EQ(choose_by_rules(problem, hopper())->format, SparseFormat::csr);
    }
  }
  SparseProblem gradient =
      with(some_mean(), SparseOperator::spmm, SparseDirection::features_gradient);
  EXPECT_LT(cost_of(gradient, hopper(), "hyb"), 0) << "rows would have to be averaged first";
  gradient.reduction = EntryReduction::sum;
  EXPECT_GT(cost_of(gradient, hopper(), "hyb"), 0);
}

TEST(ChooseSparse, given_plans_are_checked) {
  const SparsePlan ruled = *choose_by_rules(some_product(), cpu());
  const SparsePlan of_device = *choose_by_rules(some_product(), hopper());
  const auto refusal = [&](const Target& target, SparsePlan plan, auto change) {
    change(plan);
    return message_of([&] { check(plan, some_product(), target); });
  };
  const auto nothing = [](SparsePlan&) {};
  EXPECT_NE(refusal(hopper(), ruled, nothing).find("it has teams"), std::string::npos);
  EXPECT_NE(refusal(cpu(), of_device, nothing).find("it has ranges"), std::string::npos);
  EXPECT_NE(refusal(cpu(), ruled, [](SparsePlan& p) { p.ranges->work = 0; }).find("work = 0"),
            std::string::npos);
  EXPECT_NE(refusal(cpu(), ruled, [](SparsePlan& p) { p.ranges->ahead = 0; }).find("ahead = 0"),
            std::string::npos);
  EXPECT_NE(refusal(cpu(), ruled, [](SparsePlan& p) { p.width = 3; }).find("csr has neither"),
            std::string::npos);
  const auto hyb = [](std::int64_t width, std::int64_t parts) {
    return [=](SparsePlan& p) {
      p.format = SparseFormat::hyb;
      p.width = width;
      p.column_parts = parts;
    };
  };
  EXPECT_NE(refusal(cpu(), ruled, hyb(12, 1)).find("power of 2"), std::string::npos);
  EXPECT_NE(refusal(cpu(), ruled, hyb(8, 0)).find("column_parts = 0"), std::string::npos);
  EXPECT_NE(refusal(hopper(), of_device, hyb(8, 1)).find("its teams take pieces of lines"),
            std::string::npos);
  SparsePlan over_parts = of_device;
  over_parts.teams = TeamSchedule{.part_teams = 0};
  hyb(8, 1)(over_parts);
  EXPECT_NO_THROW(check(over_parts, some_product(), hopper()));
  for (const SparseProblem& uncuttable :
       {with(some_product(), SparseOperator::edge_scores, SparseDirection::forward),
        with(some_mean(), SparseOperator::spmm, SparseDirection::features_gradient),
        with(some_product(1 << 30, 2, 2), SparseOperator::spmm, SparseDirection::forward)})
    EXPECT_NE(
        message_of([&] { check(over_parts, uncuttable, hopper()); }).find("does not go over parts"),
        std::string::npos)
        << to_text(uncuttable);
  EXPECT_NE(
      refusal(cpu(), ruled, [](SparsePlan& p) { p.format = SparseFormat::ell; }).find("width = 0"),
      std::string::npos);
  EXPECT_NE(
      refusal(hopper(), of_device, [](SparsePlan& p) { p.teams->team = 12; }).find("no power of 2"),
      std::string::npos);
  EXPECT_NE(refusal(hopper(), of_device, [](SparsePlan& p) { p.teams->ahead = 16; })
                .find("ahead is not 1 to 8"),
            std::string::npos);
  EXPECT_NE(
      refusal(hopper(), of_device, [](SparsePlan& p) { p.teams->units = 65; }).find("units = 65"),
      std::string::npos);
  EXPECT_NE(refusal(hopper(), of_device, [](SparsePlan& p) { p.teams->part_teams = -1; })
                .find("part_teams = -1"),
            std::string::npos);
  const SparseProblem of_entries =
      with(some_product(), SparseOperator::sddmm, SparseDirection::forward);
  EXPECT_NE(
      message_of([&] { check(of_device, of_entries, hopper()); }).find("give ways 0, units 0"),
      std::string::npos);
  EXPECT_NO_THROW(check(*choose_by_rules(of_entries, hopper()), of_entries, hopper()));
  EXPECT_NO_THROW(check(ruled, some_product(), cpu()));
  EXPECT_NO_THROW(check(of_device, some_product(), hopper()));
}

TEST(ChooseSparse, explains_the_choice_and_the_others) {
  const SparseProblem problem = some_product();
  const std::string text = explain(problem, cpu(), *choose_by_rules(problem, cpu()));
  for (const char* part :
       {"spmm forward sum f32 channels 128 weighted: 10000 x 10000, 70393 entries, 7.04 a row, 400 "
        "in the longest",
        "rows of 5 to 8 entries: 9999, 257 to 512: 1",
        "csr/ranges of 65536/8 ahead: rows are summed", "not ell:", "not hyb:", "by prediction"})
    EXPECT_NE(text.find(part), std::string::npos) << part << "\nin\n" << text;
  const std::string there = explain(problem, hopper(), *choose_by_rules(problem, hopper()));
  EXPECT_NE(there.find("csr/w1_t32x1_n4/runs of 2/parts 32: whole warps"), std::string::npos)
      << there;
  EXPECT_NE(there.find("csr/w1_t32x1_n4/parts 32 "), std::string::npos) << there;
}

SparsePlanPtr other_plan() {
  return std::make_shared<const SparsePlan>(
      SparsePlan{.ranges = RangeSchedule{.work = 1 << 14, .ahead = 16}});
}

TEST(SparsePlanBook, is_asked_before_the_rules) {
  const SparsePlanPtr given = other_plan();
  auto book = std::make_shared<PlanBook>();
  book->set(some_product(), cpu(), given);
  EXPECT_EQ(book->size(), 1u);
  {
    const PlanBookScope scope(book);
    EXPECT_EQ(choose(some_product(), cpu()), given);
    EXPECT_EQ(choose(some_product(), cpu()), given) << "remembered";
    EXPECT_EQ(choose(some_product(14'000), cpu()), given) << "of a bucket nearby";
    EXPECT_FALSE(choose(some_product(1'000'000), cpu())->runs_like(*given)) << "too far away";
    SparseProblem other = some_product();
    other.channels = 64;
    EXPECT_FALSE(choose(other, cpu())->runs_like(*given));
    EXPECT_TRUE(book->was_of_use());
  }
  EXPECT_TRUE(choose(some_product(), cpu())->runs_like(*choose_by_rules(some_product(), cpu())));
}

/// As many rows and entries as some_product(10'000, 7, 400), all entries in one row.
SparseProblem one_full_row() {
  SparseProblem problem = some_product();
  auto lengths = std::make_shared<RowLengths>();
  lengths->rows[0] = problem.rows - 1;
  lengths->rows[length_bucket(problem.entries)] = 1;
  lengths->longest = problem.entries;
  problem.lengths = lengths;
  return problem;
}

TEST(SparsePlanBook, a_format_is_not_taken_where_it_would_be_nearly_all_padding) {
  const auto measured = std::make_shared<const SparsePlan>(
      SparsePlan{.format = SparseFormat::ell, .width = 1 << 17, .ranges = RangeSchedule{}});
  auto book = std::make_shared<PlanBook>();
  book->set(one_full_row(), cpu(), measured);
  const PlanBookScope scope(book);
  for (int time = 0; time < 2; ++time) {   // and once more, as it is remembered
    EXPECT_EQ(choose(one_full_row(), cpu()), measured);
    const SparsePlanPtr ruled = choose(some_product(), cpu());
    EXPECT_TRUE(ruled->runs_like(*choose_by_rules(some_product(), cpu())));
    EXPECT_EQ(ruled->reason,
              "ell(131072)/ranges of 65536/8 ahead was measured for another pattern, and 10000 "
              "lines of this pattern would be nearly all padding; by the rules: " +
                  choose_by_rules(some_product(), cpu())->reason);
    EXPECT_NE(explain(some_product(), cpu(), *ruled).find("nearly all padding"), std::string::npos);
  }
}

TEST(SparsePlanBook, rows_stay_whole_only_where_they_are_short_enough) {
  SparseProblem some = some_product(1 << 20, 1, 1), more = some;
  some.lengths = more.lengths = nullptr;
  some.entries = kMostWholeRow - 1000;
  more.entries = kMostWholeRow + 1000;
  ASSERT_EQ(key_of(some, hopper()), key_of(more, hopper()));
  auto whole = std::make_shared<SparsePlan>(*choose_by_rules(some, hopper()));
  whole->teams->part_teams = 0;
  auto book = std::make_shared<PlanBook>();
  book->set(some, hopper(), whole);
  for (const bool more_first : {false, true}) {
    const PlanBookScope scope(std::make_shared<const PlanBook>(*book));
    if (!more_first) {
      EXPECT_EQ(choose(some, hopper()), whole);
    }
    const SparsePlanPtr ruled = choose(more, hopper());
    EXPECT_TRUE(ruled->runs_like(*choose_by_rules(more, hopper()))) << ruled->name();
    EXPECT_NE(ruled->reason.find("rows of 1073742824 entries together are too long to stay whole"),
              std::string::npos)
        << ruled->reason;
    EXPECT_EQ(choose(some, hopper()), whole);
  }
}

TEST(SparsePlanBook, holds_patterns_of_any_density) {
  SparseProblem dense = some_product(2, 1, 1);
  dense.lengths = nullptr;
  auto book = std::make_shared<PlanBook>();
  book->set(some_product(), cpu(), other_plan());
  const PlanBookScope scope(book);
  for (const std::int64_t entries : {1'999'999'999LL, 2'000'000'000LL, 1LL << 40}) {
    dense.entries = entries;
    EXPECT_TRUE(choose(dense, cpu())->runs_like(*choose_by_rules(dense, cpu()))) << entries;
  }
  SparseProblem denser = dense;
  denser.entries *= 2;
  EXPECT_EQ(key_of(denser, cpu()), key_of(dense, cpu())) << "the last bucket";
}

TEST(SparsePlanBook, devices_of_the_same_numbers_have_plans_of_their_own) {
  const Target h100 = hopper();
  Target h200 = hopper();
  h200.name = "NVIDIA H200";
  auto of_h100 = std::make_shared<SparsePlan>(*choose_by_rules(some_product(), h100));
  of_h100->teams->part_teams = 64;
  auto book = std::make_shared<PlanBook>();
  book->set(some_product(), h100, of_h100);
  const PlanBookScope scope(book);
  EXPECT_EQ(choose(some_product(), h100), of_h100);
  EXPECT_TRUE(choose(some_product(), h200)->runs_like(*choose_by_rules(some_product(), h200)));
}

TEST(SparsePlanBook, is_kept_in_the_store_beside_convolutions) {
  const TemporaryFolder folder;
  tune::PlanStore store({.database = folder.path() / "plans.sqlite"});
  const ConvolutionProblem layer{
      .out_rows = 4000, .offsets = 27, .in_channels = 4, .out_channels = 4};
  const tune::PlanRecord of_product{
      .plan = to_text(*other_plan()), .tuned_s = 1, .untuned_s = 2, .measured_ms = 5};
  const tune::PlanRecord of_layer{.plan = to_text(*choose_by_rules(layer, cpu())),
                                  .tuned_s = 1,
                                  .untuned_s = 1,
                                  .measured_ms = 5};
  const tune::PlanKey key = key_of(some_product(), cpu());
  EXPECT_EQ(key.operation, "spmm");
  EXPECT_EQ(key.direction, "forward");
  EXPECT_TRUE(is_of_sparse_product(key));
  EXPECT_FALSE(is_of_sparse_product(key_of(layer, cpu())));
  EXPECT_EQ(store.put_all({{key, of_product}, {key_of(layer, cpu()), of_layer}}),
            tune::Put::stored);
  // Out to a table, into another store, and found there.
  EXPECT_EQ(store.export_to(folder.path() / "plans.json"), 2);
  tune::PlanStore other({.database = folder.path() / "other.sqlite"});
  EXPECT_EQ(other.merge(tune::read_plan_table(folder.path() / "plans.json")).added, 2);
  const auto found = other.find(key_of(some_product(12'000), cpu()));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(name_of_plan(*found), other_plan()->name());
  const PlanBook book = PlanBook::of(tune::read_plan_table(folder.path() / "plans.json"));
  EXPECT_EQ(book.size(), 2u);
  ASSERT_NE(book.find_sparse(key), nullptr);
  EXPECT_TRUE(book.find_sparse(key)->runs_like(*other_plan()));
  EXPECT_NE(book.find(key_of(layer, cpu())), nullptr);
  EXPECT_EQ(book.find(key), nullptr);
}

}   // namespace
}   // namespace pumice::test
