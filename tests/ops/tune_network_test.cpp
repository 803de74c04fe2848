// Tuning a small network from its calls to the store, on the CPU and on a device.
// Covers CallRecorder, tune_network, explain_network and their to_text.
#include <pumice/ops/tune_network.hpp>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/plan_record.hpp>
#include <pumice/plan/plan_book.hpp>

#include "ops/ops_support.hpp"
#include "ops/tune/replay.hpp"
#include "plan/child_process.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::test {
namespace {

const KernelWindow kThree = submanifold_window(3, axes(3, 3), axes(3, 1));

/// Distinct sites in a box around zero, a third of whose cells they fill.
Tensor some_sites(std::int64_t count, Random& random) {
  const auto extent = static_cast<int>(std::cbrt(3.0 * static_cast<double>(count))) + 1;
  std::set<std::array<std::int32_t, 4>> cells;
  while (std::ssize(cells) < count) {
    const auto cell = [&] { return static_cast<std::int32_t>(random.integer(0, extent)) - 3; };
    cells.insert({0, cell(), cell(), cell()});
  }
  std::vector<std::int32_t> flat;
  for (const auto& cell : cells)
    flat.insert(flat.end(), cell.begin(), cell.end());
  return Tensor::from<std::int32_t>(flat, {count, 4});
}

/// Two convolutions on one map; with a backward pass where it trains.
class SmallNetwork {
 public:
  SmallNetwork(StreamView stream, std::vector<std::int64_t> sizes, bool trains)
      : stream_(stream), trains_(trains) {
    Random random(5);
    for (const std::int64_t size : sizes) {
      coordinates_.push_back(copy_to(stream, some_sites(size, random)));
      features_.push_back(copy_to(stream, chance_tensor({size, 16}, DType::f32, 7)));
    }
  }

  void run(int scan, const ConvolutionPlan* plan = nullptr) {
    const auto number = static_cast<std::size_t>(scan);
    const CoordinateSetPtr set = CoordinateSet::create(coordinates_[number], {.batch_size = 1});
    const KernelMapPtr map = submanifold_map(set, kThree);
    ConvolutionOptions options;
    options.plan = plan;
    const Tensor y = convolution(features_[number], first_, map->view(), options);
    const Tensor z = convolution(y, second_, map->view(), options);
    if (!trains_) return;
    (void)convolution_weight_gradient(y, z, map->view());
    const Tensor back = convolution_input_gradient(z, second_, map->view());
    (void)convolution_input_gradient(back, first_, map->view());
  }

  NetworkPasses passes() {
    return {.run = [this](int scan) { run(scan); },
            .scans = static_cast<int>(coordinates_.size()),
            .stream = stream_};
  }

 private:
  StreamView stream_;
  bool trains_;
  std::vector<Tensor> coordinates_;
  std::vector<Tensor> features_;
  Tensor first_ = copy_to(stream_, chance_tensor({27, 16, 8}, DType::f32, 1));
  Tensor second_ = copy_to(stream_, chance_tensor({27, 8, 8}, DType::f32, 2));
};

tune::Options quick() {
  return {.budget_s = 3, .most_pairs = 10};
}

TEST(CallRecorderTest, notes_calls_whose_plans_are_chosen) {
  SmallNetwork network({}, {500}, true);
  CallRecorder recorder;
  network.run(0);
  const std::vector<OperatorCall> calls = recorder.take();
  std::vector<std::string> texts;
  for (const OperatorCall& call : calls)
    texts.push_back(to_text(call.problem));
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "forward f32 16>8 offsets 27", "forward f32 8>8 offsets 27",
                       "weight_gradient f32 8>8 offsets 27", "input_gradient f32 8>8 offsets 27",
                       "input_gradient f32 8>16 offsets 27"}));
  EXPECT_FALSE(calls[0].is_transposed);
  EXPECT_TRUE(calls[3].is_transposed);
  EXPECT_EQ(calls[0].map, calls[3].map);
  SmallNetwork given({}, {500}, false);
  given.run(0, calls[0].plan.get());
  EXPECT_TRUE(recorder.take().empty());
  EXPECT_NE(message_of([] { CallRecorder(); }).find("one tuning at a time"), std::string::npos);
}

/// What has to hold wherever it runs.
void expect_tuned(StreamView stream, bool trains) {
  TemporaryFolder folder;
  tune::PlanStore store({.database = folder.path() / "plans.sqlite", .is_default = false});
  SmallNetwork network(stream, {700, 2000}, trains);
  const Target& target = target_of(stream.device);
  const NetworkTuning tuning = tune_network(network.passes(), quick(), &store);

  ASSERT_EQ(tuning.layers.size(), trains ? 5u : 2u);
  for (const TunedLayer& layer : tuning.layers) {
    EXPECT_NO_THROW(check(*layer.plan, layer.problem, target)) << layer.plan->name();
    EXPECT_TRUE(layer.untuned->runs_like(*choose_by_rules(layer.problem, target)));
    const tune::GroupReport& group = tuning.result.groups.at(layer.group);
    const tune::DecisionReport& decision = group.decisions.at(layer.decision);
    EXPECT_EQ(decision.candidates.at(decision.chosen).name, layer.plan->name());
    EXPECT_FALSE(decision.reason.empty());
    // What has the same bits every time keeps them, unless nobody had them before.
    EXPECT_TRUE(layer.untuned->write == Write::add || layer.plan->write != Write::add);
    const bool adds = layer.untuned->write == Write::add;
    for (const tune::CandidateReport& candidate : decision.candidates)
      EXPECT_TRUE(adds || !candidate.name.ends_with("/add")) << candidate.name;
    for (const tune::CandidateReport& candidate : decision.candidates)
      EXPECT_NE(candidate.verdict, tune::Verdict::refused) << candidate.reason;
    const auto found = store.find(key_of(layer.problem, target));
    // The budget may end before.
    if (group.verdict == tune::Verdict::not_measured || group.untuned_s.samples == 0) continue;
    ASSERT_TRUE(found.has_value()) << to_text(layer.problem);
    EXPECT_TRUE(parse_plan(found->record.plan).runs_like(*layer.plan));
  }
  EXPECT_NE(tuning.to_text().find(tuning.result.summary), std::string::npos);
  // On a device layers of one map are one group; on the CPU each is its own.
  const bool on_device = stream.device.kind == DeviceKind::cuda;
  EXPECT_EQ(tuning.result.groups.size(), on_device ? 1u : tuning.layers.size());
}

TEST(TuneNetwork, finds_plans_that_fit_and_stores_them) {
  expect_tuned({}, false);
  expect_tuned({}, true);
}

TEST(TuneNetwork, runs_by_rules_while_it_measures_and_leaves_nothing_behind) {
  SmallNetwork network({}, {500}, false);
  const std::uint64_t before = plans_in_use();
  (void)tune_network(network.passes(), quick(), nullptr);
  EXPECT_NE(plans_in_use(), before) << "what was kept of another book must go";
  EXPECT_NO_THROW(PlanBookScope(std::make_shared<const PlanBook>()));
  EXPECT_NO_THROW(CallRecorder());
}

TEST(TuneNetwork, asks_the_store_before_anything_is_measured) {
  TemporaryFolder folder;
  const std::filesystem::path file = folder.path() / "notes.txt";
  std::ofstream(file) << "not a database";
  tune::PlanStore store({.database = file, .is_default = false});
  int passes = 0;
  const NetworkPasses counted{.run = [&](int) { ++passes; }};
  const std::string said = message_of([&] { (void)tune_network(counted, quick(), &store); });
  EXPECT_NE(said.find("it is no database"), std::string::npos) << said;
  EXPECT_EQ(passes, 0);
}

TEST(TuneNetwork, says_what_it_cannot_tune) {
  const auto refusal = [](NetworkPasses passes) {
    return message_of([&] { (void)tune_network(passes, quick(), nullptr); });
  };
  EXPECT_NE(refusal({}).find("passes.run is empty"), std::string::npos);
  EXPECT_NE(refusal({.run = [](int) {}, .scans = 0}).find("scans = 0"), std::string::npos);
  EXPECT_NE(refusal({.run = [](int) {}}).find("nothing to tune"), std::string::npos);
  SmallNetwork network({}, {300}, false), training({}, {300}, true);
  const auto changes = [&](int scan) { (scan == 0 ? network : training).run(0); };
  EXPECT_NE(refusal({.run = changes, .scans = 2}).find("scan 2 runs other layers"),
            std::string::npos);
  const auto throws = [](int) { throw UserError("the network is on strike"); };
  EXPECT_EQ(refusal({.run = throws}), "the network is on strike");
  EXPECT_NO_THROW(CallRecorder()) << "released on the way";
}

void expect_explained(StreamView stream) {
  SmallNetwork network(stream, {700}, true);
  const ExplainedNetwork explained = explain_network(network.passes(), true);
  const std::vector<ExplainedLayer>& layers = explained.layers;
  ASSERT_EQ(layers.size(), 5u);
  for (const ExplainedLayer& layer : layers) {
    EXPECT_EQ(layer.calls, 1);
    std::set<std::string> names;
    bool has_chosen = false;
    for (const CandidateCost& one : layer.candidates) {
      EXPECT_TRUE(names.insert(one.plan->name()).second);
      has_chosen |= one.plan->runs_like(*layer.plan);
      EXPECT_EQ(one.refusal, "");
      ASSERT_TRUE(one.measured_s.has_value()) << one.plan->name();
      EXPECT_GT(*one.measured_s, 0);
    }
    EXPECT_TRUE(has_chosen);
    EXPECT_NE(to_text(explained).find(layer.plan->name()), std::string::npos);
  }
}

TEST(ExplainNetwork, measures_every_candidate) {
  expect_explained({});
}

/// In a process of its own, which opens the store of its environment once.
TEST(ExplainNetwork, calls_stored_what_runs_and_nothing_else) {
  TemporaryFolder folder;
  EXPECT_EQ(said_by_child([&]() -> std::string {
              const std::filesystem::path file = folder.path() / "plans.sqlite";
              setenv("PUMICE_PLANS", file.c_str(), 1);
              if (tune::process_plans().database() != file)
                return "the store was open before; run this test alone, as ctest does";
              SmallNetwork network({}, {700}, false);
              const auto said = [&] {
                const ExplainedLayer layer = explain_network(network.passes(), false).layers[0];
                return layer.plan->name() + (layer.stored ? ", stored" : ", by rules");
              };
              const ExplainedLayer first = explain_network(network.passes(), false).layers[0];
              const auto store = [&](const std::string& plan) {
                tune::process_plans().put(key_of(first.problem, target_of(Device{})),
                                          {.plan = plan, .tuned_s = 1, .untuned_s = 1});
              };
              if (said() != first.plan->name() + ", by rules") return "stored from the start";
              store(to_text(*first.candidates.back().plan));
              if (said() != first.candidates.back().plan->name() + ", stored") return said();
              store(R"({"dataflow":"sum_over_pairs"})");
              if (said() != first.plan->name() + ", by rules") return said();
              store("no plan at all");
              return said() == first.plan->name() + ", by rules" ? "" : said();
            }),
            "");
}

TEST(TuneNetworkGpu, finds_plans_that_fit_and_stores_them) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  expect_tuned(stream, false);
  expect_tuned(stream, true);
}

TEST(ThreadCallsTest, are_those_of_one_thread_whoever_else_notes) {
  SmallNetwork network({}, {500}, false), other({}, {300}, false);
  CallRecorder of_all;
  ThreadCalls outer;
  {
    ThreadCalls inner;
    network.run(0);
    std::thread([&] { other.run(0); }).join();
    EXPECT_EQ(inner.take().size(), 2u);
    EXPECT_TRUE(inner.take().empty());
  }
  EXPECT_TRUE(outer.take().empty()) << "the inner one noted them";
  network.run(0);
  EXPECT_EQ(outer.take().size(), 2u);
  EXPECT_EQ(of_all.take().size(), 6u);
}

/// A linear layer and its gradients.
void run_linear(const Tensor& x, const Tensor& weight) {
  const Tensor y = linear(x, weight);
  (void)linear_weight_gradient(x, y);
  (void)linear_input_gradient(y, weight);
}

TEST(CallRecorderTest, notes_no_linear_layers_of_the_cpu) {
  CallRecorder recorder;
  run_linear(chance_tensor({33, 16}, DType::f32, 1), chance_tensor({16, 8}, DType::f32, 2));
  EXPECT_TRUE(recorder.take().empty());
}

/// What a call is timed by: it runs the operator of its direction, with the plan it is given.
void expect_replayed(const OperatorCall& call, StreamView stream) {
  ReplayTensors tensors(stream);
  ReplayedCall replayed(call, tensors, true);
  PlanRecord record;
  replayed.run(*call.plan, nullptr);
  const std::vector<RanPlan> ran = record.take();
  ASSERT_EQ(ran.size(), 1u);
  EXPECT_EQ(ran[0].direction, call.problem.direction);
  EXPECT_TRUE(ran[0].plan->runs_like(*call.plan)) << ran[0].plan->name();
}

TEST(TuneNetworkGpu, finds_plans_of_linear_layers) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Tensor x = copy_to(stream, chance_tensor({700, 16}, DType::f32, 1));
  const Tensor weight = copy_to(stream, chance_tensor({16, 8}, DType::f32, 2));
  {
    CallRecorder recorder;
    run_linear(x, weight);
    const std::vector<OperatorCall> calls = recorder.take();
    ASSERT_EQ(calls.size(), 3u);
    for (const OperatorCall& call : calls)
      expect_replayed(call, stream);
  }
  // On the emulator the budget may end before anything is measured; its replays are tested above.
  const NetworkPasses passes{.run = [&](int) { run_linear(x, weight); }, .stream = stream};
  const NetworkTuning tuning = tune_network(passes, {.budget_s = 2, .most_pairs = 10}, nullptr);
  std::vector<std::string> problems;
  for (const TunedLayer& layer : tuning.layers) {
    problems.push_back(to_text(layer.problem));
    EXPECT_NO_THROW(check(*layer.plan, layer.problem, target_of(kGpu))) << layer.plan->name();
    const tune::GroupReport& group = tuning.result.groups.at(layer.group);
    EXPECT_EQ(group.name, "linear, 700 rows, " + problems.back());
    EXPECT_TRUE(on_emulator() || group.untuned_s.samples > 0) << group.name;
    for (const tune::CandidateReport& candidate : group.decisions.at(layer.decision).candidates)
      EXPECT_NE(candidate.verdict, tune::Verdict::refused) << candidate.reason;
  }
  EXPECT_EQ(problems, (std::vector<std::string>{"forward f32 16>8 offsets 1 identity",
                                                "weight_gradient f32 16>8 offsets 1 identity",
                                                "input_gradient f32 8>16 offsets 1 identity"}));
}

TEST(TuneNetworkGpu, measures_every_candidate) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  expect_explained(stream);
}

}   // namespace
}   // namespace pumice::test
