// Every candidate of a sparse product on a device beside loops over a list of entries in float64,
// and that what is given is what runs.
// Covers the plans of ops/cuda/sparse_products and kernels/cuda/entry_launch.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/stream_heap.hpp>
#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/plan/choose_sparse.hpp>
#include <pumice/plan/plan_book.hpp>

#include "core/cuda/graph.hpp"
#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "ops/sparse_calls.hpp"
#include "ops/spmm_reference.hpp"
#include "support/gpu.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// Runs `call(plan)` for every candidate and checks that it ran.
template <class Call> void for_candidates(SparseProblem problem, Call&& call) {
  for (const SparseCandidate& one : candidates(problem, target_of(kGpu))) {
    SCOPED_TRACE(to_text(problem) + " by " + one.plan.name());
    PlanRecord record;
    call(one.plan);
    const std::vector<RanSparsePlan> ran = record.take_sparse();
    ASSERT_EQ(ran.size(), 1u);
    EXPECT_TRUE(ran[0].plan->runs_like(one.plan)) << ran[0].plan->name();
  }
}

/// Short rows, rows without entries, and one of more entries than a part has.
PatternCase uneven() {
  PatternCase one = random_pattern(120, 90, 500, 8);
  one.name = "uneven";
  for (std::int64_t e = 0; e < 300; ++e) {
    one.row.push_back(17);
    one.column.push_back(e % 90);
  }
  return one;
}

void check_product(const PatternCase& one, std::int64_t channels, std::int64_t heads, DType type,
                   double tolerance, EntryReduction reduction, const Stream& stream) {
  const Tensor x = random_tensor({one.columns, channels}, type, 1);
  const Tensor g = random_tensor({one.rows, channels}, type, 2);
  const Tensor values = random_tensor({one.entries(), heads}, type, 3);
  const Reference expected(one, values.to(DType::f64), x.to(DType::f64), g.to(DType::f64), heads,
                           reduction);
  const Csr csr = one.csr();
  const Csr back = transposed(csr.view());
  const Csr forward = copy_to(stream, csr.view()), backwards = copy_to(stream, back.view());
  const Tensor x_there = copy_to(stream, x), g_there = copy_to(stream, g),
               values_there = copy_to(stream, values);
  const SpmmResult chosen = spmm(forward.view(), values_there, x_there, reduction);
  const ConstTensorView source = picks(reduction) ? chosen.source.view() : ConstTensorView();
  const auto problem = [&](SparseOperator op, SparseDirection direction, const CsrView& pattern) {
    SparseProblem made = sparse_problem(op, direction, pattern, type, channels, heads);
    made.reduction = reduction;
    made.weighted = op == SparseOperator::spmm;
    return made;
  };
  for_candidates(
      problem(SparseOperator::spmm, SparseDirection::forward, forward.view()),
      [&](const SparsePlan& plan) {
        const SpmmResult got = spmm(forward.view(), values_there, x_there, reduction, {}, &plan);
        expect_near(copy_to_host(got.output, stream), expected.output, tolerance, "output");
        if (picks(reduction)) {
          EXPECT_TRUE(same_bits(copy_to_host(got.source, stream), expected.source));
        }
      });
  for_candidates(
      problem(SparseOperator::spmm, SparseDirection::features_gradient, backwards.view()),
      [&](const SparsePlan& plan) {
        const Tensor got = spmm_features_gradient(forward.view(), backwards.view(), values_there,
                                                  g_there, source, reduction, {}, &plan);
        expect_near(copy_to_host(got, stream), expected.features_gradient, tolerance,
                    "gradient of the features");
      });
  for_candidates(problem(SparseOperator::spmm, SparseDirection::values_gradient, forward.view()),
                 [&](const SparsePlan& plan) {
                   const Tensor got = spmm_values_gradient(forward.view(), x_there, g_there, heads,
                                                           source, reduction, {}, &plan);
                   expect_near(copy_to_host(got, stream), expected.values_gradient, tolerance,
                               "gradient of the values");
                 });
  if (reduction != EntryReduction::sum) return;
  const Tensor products = dots(one, g.to(DType::f64), x.to(DType::f64), heads);
  for_candidates(problem(SparseOperator::sddmm, SparseDirection::forward, forward.view()),
                 [&](const SparsePlan& plan) {
                   const Tensor got = sddmm(forward.view(), g_there, x_there, heads, {}, &plan);
                   expect_near(copy_to_host(got, stream), products, tolerance, "dot products");
                 });
}

TEST(SparsePlansGpu, every_candidate_computes_what_the_definition_says) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  check_product(uneven(), 16, 2, DType::f32, 2e-5, EntryReduction::sum, stream);
  check_product(uneven(), 20, 1, DType::f16, 2e-3, EntryReduction::mean, stream);
  check_product(uneven(), 5, 1, DType::f32, 2e-5, EntryReduction::max, stream);
  const Csr csr = uneven().csr();
  SparseProblem problem =
      sparse_problem(SparseOperator::spmm, SparseDirection::forward, csr.view(), DType::f32, 16, 2);
  std::set<SparseFormat> formats;
  for (const SparseCandidate& one : candidates(problem, target_of(kGpu)))
    formats.insert(one.plan.format);
  EXPECT_EQ(formats.size(), 3u) << "csr, ell and hyb were among them";
}

TEST(SparsePlansGpu, a_cut_that_was_measured_is_made_once_and_never_while_nothing_may_wait) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Csr here = uneven().csr();
  const Csr pattern = copy_to(stream, here.view()), other = copy_to(stream, here.view());
  const Tensor x = copy_to(stream, random_tensor({90, 16}, DType::f32, 1));
  const SparseProblem problem = sparse_problem(SparseOperator::spmm, SparseDirection::forward,
                                               pattern.view(), DType::f32, 16, 1);
  SparsePlanPtr measured;
  for (const SparseCandidate& one : candidates(problem, target_of(kGpu)))
    if (one.plan.format == SparseFormat::hyb)
      measured = std::make_shared<const SparsePlan>(one.plan);
  ASSERT_NE(measured, nullptr);
  auto book = std::make_shared<PlanBook>();
  book->set(problem, target_of(kGpu), measured);
  const PlanBookScope scope(book);
  const auto ran_over = [&](const Csr& of) {
    PlanRecord record;
    (void)spmm(of.view(), {}, x);
    const std::vector<RanSparsePlan> plans = record.take_sparse();
    return plans.size() == 1 ? plans.front().plan : nullptr;
  };
  EXPECT_TRUE(can_wait(stream));
  {
    const RefusedWaits none;
    EXPECT_FALSE(can_wait(stream));
    const SparsePlanPtr ruled = ran_over(pattern);
    ASSERT_NE(ruled, nullptr);
    EXPECT_TRUE(ruled->runs_like(*choose_by_rules(problem, target_of(kGpu)))) << ruled->name();
    EXPECT_NE(ruled->reason.find("cannot wait for it"), std::string::npos) << ruled->reason;
  }
  EXPECT_TRUE(ran_over(pattern)->runs_like(*measured));
  const auto kept = cut_for(*measured, pattern.view(), stream);
  {
    const RefusedWaits none;
    EXPECT_TRUE(ran_over(pattern)->runs_like(*measured)) << "it is there";
  }
  EXPECT_EQ(cut_for(*measured, pattern.view(), stream), kept);
  const auto memory = std::make_shared<StreamHeap>(stream);
  constexpr std::size_t kEnough = std::size_t{1} << 20;
  memory->deallocate(memory->allocate(kEnough, stream), kEnough, stream);
  SparsePlanPtr uncut, cut;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope memory_of_graph(kGpu, memory);
    EXPECT_FALSE(can_wait(stream));
    uncut = ran_over(other);
    cut = ran_over(pattern);
  });
  EXPECT_EQ(uncut->format, SparseFormat::csr);
  EXPECT_TRUE(cut->runs_like(*measured));
}

TEST(SparsePlansGpu, scores_are_those_of_the_rules_plan_by_every_candidate) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const PatternCase one = uneven();
  const Csr csr = one.csr();
  const Csr pattern = copy_to(stream, csr.view());
  const Tensor target = random_tensor({one.rows, 12}, DType::f32, 1);
  const Tensor source = random_tensor({one.columns, 12}, DType::f32, 2);
  const Tensor attention = random_tensor({3, 4}, DType::f32, 3);
  const Tensor expected = edge_scores(
      csr.view(),
      {.target = target, .source = source, .attention = attention, .negative_slope = 0.2});
  const Tensor target_there = copy_to(stream, target), source_there = copy_to(stream, source),
               attention_there = copy_to(stream, attention);
  for_candidates(sparse_problem(SparseOperator::edge_scores, SparseDirection::forward,
                                pattern.view(), DType::f32, 12, 3),
                 [&](const SparsePlan& plan) {
                   const Tensor got = edge_scores(pattern.view(),
                                                  {.target = target_there,
                                                   .source = source_there,
                                                   .attention = attention_there,
                                                   .negative_slope = 0.2},
                                                  {}, &plan);
                   expect_near(copy_to_host(got, stream), expected.to(DType::f64), 2e-5, "scores");
                 });
}

}   // namespace
}   // namespace pumice::test
