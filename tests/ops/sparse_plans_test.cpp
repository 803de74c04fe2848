// Every candidate of a sparse product beside loops over a list of entries in float64, on the CPU,
// and that what is given is what runs.
// Covers sparse_calls, and the plans of spmm, sddmm and edge_scores.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/plan/choose_sparse.hpp>
#include <pumice/plan/plan_book.hpp>

#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/sparse_calls.hpp"
#include "ops/spmm_reference.hpp"
#include "support/message_of.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

const Target& here() {
  return target_of(Device{});
}

SparseProblem problem_of(SparseOperator op, SparseDirection direction, const CsrView& pattern,
                         std::int64_t channels, EntryReduction reduction) {
  SparseProblem problem = sparse_problem(op, direction, pattern, DType::f32, channels, 1);
  problem.reduction = reduction;
  problem.weighted = op == SparseOperator::spmm;
  return with_lengths(problem, pattern);
}

/// Runs `call(plan)` for every candidate and checks that it ran; returns how many there were.
template <class Call> std::size_t for_candidates(const SparseProblem& problem, Call&& call) {
  const std::vector<SparseCandidate> all = candidates(problem, here());
  for (const SparseCandidate& one : all) {
    SCOPED_TRACE(to_text(problem) + " by " + one.plan.name());
    PlanRecord record;
    call(one.plan);
    const std::vector<RanSparsePlan> ran = record.take_sparse();
    EXPECT_EQ(ran.size(), 1u);
    if (ran.size() != 1) continue;
    EXPECT_TRUE(ran[0].plan->runs_like(one.plan)) << ran[0].plan->name();
    EXPECT_EQ(to_text(ran[0].problem), to_text(problem));
    EXPECT_EQ(key_of(ran[0].problem, here()), key_of(problem, here()));
  }
  return all.size();
}

void check_product(const PatternCase& one, std::int64_t channels, EntryReduction reduction) {
  SCOPED_TRACE(one.name);
  const double tolerance = 2e-5;
  const Tensor x = random_tensor({one.columns, channels}, DType::f32, 1);
  const Tensor g = random_tensor({one.rows, channels}, DType::f32, 2);
  const Tensor values = random_tensor({one.entries(), 1}, DType::f32, 3);
  const Reference expected(one, values.to(DType::f64), x.to(DType::f64), g.to(DType::f64), 1,
                           reduction);
  const Csr csr = one.csr();
  const Csr back = transposed(csr.view());
  const SpmmResult chosen = spmm(csr.view(), values, x, reduction);
  const ConstTensorView source = picks(reduction) ? chosen.source.view() : ConstTensorView();
  using enum SparseDirection;
  (void)for_candidates(problem_of(SparseOperator::spmm, forward, csr.view(), channels, reduction),
                       [&](const SparsePlan& plan) {
                         const SpmmResult got = spmm(csr.view(), values, x, reduction, {}, &plan);
                         expect_near(got.output, expected.output, tolerance, "output");
                         if (picks(reduction)) {
                           EXPECT_TRUE(same_bits(got.source, expected.source));
                         }
                         // Ranges and rows that are asked for change no bit.
                         if (plan.format == SparseFormat::csr) {
                           EXPECT_TRUE(same_bits(got.output, chosen.output));
                         }
                       });
  (void)for_candidates(
      problem_of(SparseOperator::spmm, features_gradient, back.view(), channels, reduction),
      [&](const SparsePlan& plan) {
        expect_near(spmm_features_gradient(csr.view(), back.view(), values, g, source, reduction,
                                           {}, &plan),
                    expected.features_gradient, tolerance, "gradient of the features");
      });
  (void)for_candidates(
      problem_of(SparseOperator::spmm, values_gradient, csr.view(), channels, reduction),
      [&](const SparsePlan& plan) {
        expect_near(spmm_values_gradient(csr.view(), x, g, 1, source, reduction, {}, &plan),
                    expected.values_gradient, tolerance, "gradient of the values");
      });
  if (reduction != EntryReduction::sum) return;
  const Tensor products = dots(one, g.to(DType::f64), x.to(DType::f64), 1);
  (void)for_candidates(problem_of(SparseOperator::sddmm, forward, csr.view(), channels, reduction),
                       [&](const SparsePlan& plan) {
                         expect_near(sddmm(csr.view(), g, x, 1, {}, &plan), products, tolerance,
                                     "dot products");
                       });
}

TEST(SparsePlans, every_candidate_computes_what_the_definition_says) {
  std::vector<PatternCase> cases = pattern_cases();
  cases.push_back(random_pattern(300, 200, 4000, 7));
  for (const PatternCase& one : cases) {
    for (const EntryReduction reduction : kReductions)
      check_product(one, 9, reduction);
  }
}

TEST(SparsePlans, scores_have_the_same_bits_by_every_candidate) {
  const PatternCase one = random_pattern(90, 70, 900, 3);
  const Csr csr = one.csr();
  const Tensor target = random_tensor({90, 12}, DType::f32, 1);
  const Tensor source = random_tensor({70, 12}, DType::f32, 2);
  const Tensor attention = random_tensor({3, 4}, DType::f32, 3);
  const AdditiveScores scores{
      .target = target, .source = source, .attention = attention, .negative_slope = 0.2};
  const Tensor chosen = edge_scores(csr.view(), scores);
  SparseProblem problem = sparse_problem(SparseOperator::edge_scores, SparseDirection::forward,
                                         csr.view(), DType::f32, 12, 3);
  EXPECT_GE(
      for_candidates(with_lengths(problem, csr.view()),
                     [&](const SparsePlan& plan) {
                       EXPECT_TRUE(same_bits(edge_scores(csr.view(), scores, {}, &plan), chosen));
                     }),
      5u);
}

TEST(SparsePlans, what_is_cut_for_a_plan_is_kept_with_the_pattern) {
  const PatternCase one = random_pattern(50, 40, 300, 4);
  const Csr csr = one.csr();
  const SparsePlan plan{.format = SparseFormat::hyb, .width = 8, .ranges = RangeSchedule{}};
  const auto first = cut_for(plan, csr.view());
  EXPECT_EQ(cut_for(plan, csr.view()), first);
  SparsePlan other = plan;
  other.column_parts = 2;
  EXPECT_NE(cut_for(other, csr.view()), first);
  CsrView without = csr.view();
  without.kept = nullptr;
  EXPECT_NE(cut_for(plan, without), first);
  EXPECT_EQ(with_lengths({}, csr.view()).lengths, with_lengths({}, csr.view()).lengths);
}

TEST(SparsePlans, a_chosen_plan_is_that_of_the_book_else_of_the_rules) {
  const PatternCase one = random_pattern(500, 400, 3000, 5);
  const Csr csr = one.csr();
  const Tensor x = random_tensor({400, 16}, DType::f32, 1);
  const auto ran = [&] {
    PlanRecord record;
    (void)spmm(csr.view(), {}, x);
    const std::vector<RanSparsePlan> plans = record.take_sparse();
    return plans.size() == 1 ? plans.front() : RanSparsePlan{};
  };
  const RanSparsePlan ruled = ran();
  ASSERT_NE(ruled.plan, nullptr);
  EXPECT_TRUE(ruled.plan->runs_like(*choose_by_rules(ruled.problem, here())));
  EXPECT_EQ(ruled.problem.entries, 3000);
  const auto measured = std::make_shared<const SparsePlan>(
      SparsePlan{.format = SparseFormat::ell, .width = 8, .ranges = RangeSchedule{}});
  auto book = std::make_shared<PlanBook>();
  book->set(ruled.problem, here(), measured);
  const PlanBookScope scope(book);
  EXPECT_TRUE(ran().plan->runs_like(*measured));
}

TEST(SparsePlans, a_plan_of_another_pattern_is_no_error_where_this_one_would_be_padding) {
  const PatternCase one = random_pattern(500, 400, 3000, 5);
  PatternCase full = one;   // as many rows and entries
  std::fill(full.row.begin(), full.row.end(), 17);
  const Csr csr = one.csr(), full_row = full.csr();
  const Tensor x = random_tensor({400, 16}, DType::f32, 1);
  const Tensor g = random_tensor({500, 16}, DType::f32, 2);
  const Tensor expected = spmm(csr.view(), {}, x).output;
  const Tensor products = sddmm(csr.view(), g, x);
  const auto padded = std::make_shared<const SparsePlan>(
      SparsePlan{.format = SparseFormat::ell, .width = 1 << 27, .ranges = RangeSchedule{}});
  auto book = std::make_shared<PlanBook>();
  SparseProblem problem = sparse_problem(SparseOperator::spmm, SparseDirection::forward,
                                         full_row.view(), DType::f32, 16, 1);
  book->set(problem, here(), padded);
  problem.op = SparseOperator::sddmm;
  book->set(problem, here(), padded);
  const PlanBookScope scope(book);
  PlanRecord record;
  EXPECT_TRUE(same_bits(spmm(csr.view(), {}, x).output, expected));
  EXPECT_TRUE(same_bits(sddmm(csr.view(), g, x), products));
  const std::vector<RanSparsePlan> ran = record.take_sparse();
  ASSERT_EQ(ran.size(), 2u);
  for (const RanSparsePlan& plan : ran) {
    EXPECT_EQ(plan.plan->format, SparseFormat::csr);
    EXPECT_NE(plan.plan->reason.find("would be nearly all padding"), std::string::npos);
  }
  EXPECT_NE(message_of([&] {
              (void)spmm(csr.view(), {}, x, EntryReduction::sum, {}, padded.get());
            }).find("nearly all of them padding"),
            std::string::npos)
      << "one that is given";
}

TEST(SparsePlans, given_plans_that_do_not_fit_are_refused) {
  const PatternCase one = random_pattern(20, 20, 50, 6);
  const Csr csr = one.csr();
  const Tensor x = random_tensor({20, 4}, DType::f32, 1);
  const SparsePlan of_device{.teams = TeamSchedule{}};
  EXPECT_NE(message_of([&] {
              (void)spmm(csr.view(), {}, x, EntryReduction::sum, {}, &of_device);
            }).find("it has ranges, and no teams"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::test
