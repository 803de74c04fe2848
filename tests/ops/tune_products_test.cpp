// Tuning and explaining the sparse products of a network, on the CPU and on a device.
// Covers sparse_replay, sparse_groups, and what tune_network and explain_network make of products.
#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/allocator.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/stream_heap.hpp>
#include <pumice/ops/edge_scores.hpp>
#include <pumice/ops/spmm.hpp>
#include <pumice/ops/tune_network.hpp>
#include <pumice/plan/choose_sparse.hpp>
#include <pumice/plan/plan_book.hpp>

#include "core/cuda/graph.hpp"
#include "graphs/random_pattern.hpp"
#include "kernels/problem.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::test {
namespace {

/// Products of two sizes, and of one of them twice.
class SmallProducts {
 public:
  explicit SmallProducts(StreamView stream) : stream_(stream) {
    const Csr here = random_pattern(300, 200, 2000, 3).csr();
    const Csr back = transposed(here.view());
    pattern_ = copy_to(stream, here.view());
    backwards_ = copy_to(stream, back.view());
    left_ = copy_to(stream, random_tensor({300, 8}, DType::f32, 1));
    right_ = copy_to(stream, random_tensor({200, 8}, DType::f32, 2));
    values_ = copy_to(stream, random_tensor({2000, 2}, DType::f32, 3));
    attention_ = copy_to(stream, random_tensor({2, 4}, DType::f32, 4));
  }

  void run() {
    const CsrView view = pattern_.view(), back = backwards_.view();
    (void)spmm(view, values_, right_);
    (void)spmm(view, values_, right_);
    const SpmmResult most = spmm(view, {}, right_, EntryReduction::max);
    (void)spmm_features_gradient(view, back, values_, left_);
    (void)spmm_features_gradient(view, back, {}, left_, most.source, EntryReduction::max);
    (void)spmm_values_gradient(view, right_, left_, 2);
    (void)sddmm(view, left_, right_, 2);
    (void)edge_scores(view, {.target = left_,
                             .source = right_,
                             .attention = attention_,
                             .entry = {},
                             .negative_slope = 0.2});
  }

  void run_one() { (void)sddmm(pattern_.view(), left_, right_); }

  NetworkPasses one() {
    return {.run = [this](int) { run_one(); }, .stream = stream_};
  }
  NetworkPasses passes() {
    return {.run = [this](int) { run(); }, .stream = stream_};
  }

 private:
  StreamView stream_;
  Csr pattern_, backwards_;
  Tensor left_, right_, values_, attention_;
};

const std::vector<std::string> kProblems{
    "spmm forward sum f32 channels 8 heads 2 weighted",
    "spmm forward max f32 channels 8",
    "spmm features_gradient sum f32 channels 8 heads 2 weighted",
    "spmm features_gradient max f32 channels 8",
    "spmm values_gradient sum f32 channels 8 heads 2 weighted",
    "sddmm forward f32 channels 8 heads 2",
    "edge_scores forward f32 channels 8 heads 2"};

TEST(SparseCallRecorder, notes_products_and_keeps_a_pattern_of_each_key) {
  SmallProducts products({});
  CallRecorder recorder;
  products.run();
  const std::vector<SparseCall> calls = recorder.take_sparse();
  ASSERT_EQ(calls.size(), 8u);
  EXPECT_TRUE(recorder.take().empty());
  EXPECT_EQ(to_text(calls[0].problem), kProblems[0]);
  ASSERT_NE(calls[0].pattern, nullptr);
  EXPECT_EQ(calls[0].pattern->view().entries(), 2000);
  EXPECT_EQ(calls[1].pattern, nullptr) << "the same key once more";
  ASSERT_NE(calls[0].problem.lengths, nullptr);
  EXPECT_EQ(calls[3].problem.rows, 200) << "a gradient of features goes over the transpose";
  const SparsePlan given = *calls[0].plan;
  const Csr pattern = random_pattern(9, 9, 20, 1).csr();
  (void)spmm(pattern.view(), {}, random_tensor({9, 4}, DType::f32, 1), EntryReduction::sum, {},
             &given);
  EXPECT_TRUE(recorder.take_sparse().empty()) << "a plan that was given is not chosen";
}

/// Memory of a framework: whoever asks for it may have to wait for a thread that runs products.
class MemoryOfOthers final : public Allocator {
 public:
  void* allocate(std::size_t bytes, StreamView stream) override {
    auto other = std::async(std::launch::async, [] {
      const Csr pattern = random_pattern(9, 9, 20, 1).csr();
      (void)spmm(pattern.view(), {}, random_tensor({9, 4}, DType::f32, 1));
    });
    all_came &= other.wait_for(std::chrono::seconds(10)) == std::future_status::ready;
    others_.push_back(std::move(other));
    return cpu_allocator()->allocate(bytes, stream);
  }
  void deallocate(void* data, std::size_t bytes, StreamView stream) noexcept override {
    cpu_allocator()->deallocate(data, bytes, stream);
  }
  std::size_t asked() const { return others_.size(); }
  bool all_came = true;

 private:
  std::vector<std::future<void>> others_;
};

TEST(SparseCallRecorder, lets_other_threads_run_products_while_a_pattern_is_copied) {
  SmallProducts products({});
  const auto memory = std::make_shared<MemoryOfOthers>();
  CallRecorder recorder;
  {
    const AllocatorScope scope(Device{}, memory);
    products.run_one();
  }
  EXPECT_GE(memory->asked(), 2u) << "a copy of the pattern, and the result";
  EXPECT_TRUE(memory->all_came);
  const std::vector<SparseCall> calls = recorder.take_sparse();
  EXPECT_EQ(calls.size(), memory->asked() + 1);
  EXPECT_EQ(
      std::ranges::count_if(calls, [](const SparseCall& call) { return call.pattern != nullptr; }),
      2);
}

TEST(SparseCallRecorderGpu, notes_nothing_of_a_product_that_is_captured) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  SmallProducts products(stream);
  products.run_one();   // compiles what it takes
  const auto memory = std::make_shared<StreamHeap>(stream);
  constexpr std::size_t kEnough = std::size_t{1} << 20;
  memory->deallocate(memory->allocate(kEnough, stream), kEnough, stream);
  CallRecorder recorder;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope scope(kGpu, memory);
    products.run_one();
  });
  EXPECT_TRUE(recorder.take_sparse().empty());
  products.run_one();
  EXPECT_EQ(recorder.take_sparse().size(), 1u);
}

void expect_tuned(StreamView stream) {
  const TemporaryFolder folder;
  tune::PlanStore store({.database = folder.path() / "plans.sqlite"});
  SmallProducts products(stream);
  const Target& target = target_of(stream.device);
  const NetworkTuning tuning =
      tune_network(products.passes(), {.budget_s = 3, .most_pairs = 10}, &store);
  ASSERT_EQ(tuning.products.size(), kProblems.size());
  EXPECT_TRUE(tuning.layers.empty());
  for (std::size_t i = 0; i < kProblems.size(); ++i) {
    const TunedProduct& product = tuning.products[i];
    SCOPED_TRACE(kProblems[i]);
    EXPECT_EQ(to_text(product.problem), kProblems[i]);
    EXPECT_EQ(product.calls, i == 0 ? 2 : 1);
    EXPECT_NO_THROW(check(*product.plan, product.problem, target));
    EXPECT_TRUE(product.untuned->runs_like(*choose_by_rules(product.problem, target)));
    const tune::GroupReport& group = tuning.result.groups.at(product.group);
    const tune::DecisionReport& decision = group.decisions.at(product.decision);
    EXPECT_EQ(decision.candidates.at(decision.chosen).name, product.plan->name());
    for (const tune::CandidateReport& candidate : decision.candidates)
      EXPECT_NE(candidate.verdict, tune::Verdict::refused) << candidate.reason;
    // The budget may end before.
    if (group.verdict == tune::Verdict::not_measured || group.untuned_s.samples == 0) continue;
    const auto found = store.find(key_of(product.problem, target));
    ASSERT_TRUE(found.has_value());
    EXPECT_TRUE(parse_sparse_plan(found->record.plan).runs_like(*product.plan));
  }
  EXPECT_NE(tuning.to_json().find(kProblems[0]), std::string::npos);
  EXPECT_NE(tuning.to_text().find(kProblems[0]), std::string::npos);
}

void expect_explained(const NetworkPasses& passes, std::size_t products) {
  const ExplainedNetwork found = explain_network(passes, true);
  EXPECT_TRUE(found.layers.empty());
  ASSERT_EQ(found.products.size(), products);
  for (const ExplainedProduct& product : found.products) {
    SCOPED_TRACE(to_text(product.problem));
    bool has_chosen = false;
    for (const auto& one : product.candidates) {
      has_chosen |= one.plan->runs_like(*product.plan);
      EXPECT_EQ(one.refusal, "");
      ASSERT_TRUE(one.measured_s.has_value()) << one.plan->name();
      EXPECT_GT(*one.measured_s, 0);
    }
    EXPECT_TRUE(has_chosen);
    EXPECT_NE(to_text(found).find(product.plan->name()), std::string::npos);
    EXPECT_NE(to_json(found).find(to_text(product.problem)), std::string::npos);
  }
}

TEST(TuneProducts, finds_plans_that_fit_and_stores_them) {
  expect_tuned({});
}

TEST(TuneProducts, explains_and_measures_every_candidate) {
  SmallProducts products({});
  expect_explained(products.passes(), kProblems.size());
}

TEST(TuneProducts, scans_may_have_patterns_of_their_own) {
  const std::vector<PatternCase> cases{random_pattern(300, 300, 900, 1),
                                       random_pattern(3000, 3000, 12'000, 2)};
  std::vector<Csr> patterns;
  std::vector<Tensor> features;
  for (const PatternCase& one : cases) {
    patterns.push_back(one.csr());
    features.push_back(random_tensor({one.columns, 8}, DType::f32, 1));
  }
  const auto run = [&](int scan) {
    const auto number = static_cast<std::size_t>(scan);
    (void)spmm(patterns[number].view(), {}, features[number]);
  };
  const NetworkTuning tuning =
      tune_network({.run = run, .scans = 2}, {.budget_s = 3, .most_pairs = 10}, nullptr);
  ASSERT_EQ(tuning.products.size(), 1u);
  EXPECT_EQ(tuning.plans.size(), 2u) << "one for the size of each scan";
  const auto other = [&](int scan) {
    if (scan == 0) return run(0);
    (void)sddmm(patterns[1].view(), features[1], features[1]);
  };
  EXPECT_NE(message_of([&] {
              (void)tune_network({.run = other, .scans = 2}, {.budget_s = 1}, nullptr);
            }).find("scan 2 runs other layers"),
            std::string::npos);
}

TEST(TuneProductsGpu, finds_plans_that_fit_and_stores_them) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  expect_tuned(stream);
}

TEST(TuneProductsGpu, explains_and_measures_every_candidate) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  SmallProducts products(stream);
  // Caches are filled before each of 16 samples of each candidate, 0.6 s on the emulator.
  if (on_emulator()) return expect_explained(products.one(), 1);
  expect_explained(products.passes(), kProblems.size());
}

}   // namespace
}   // namespace pumice::test
