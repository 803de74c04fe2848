// Covers networks that run as CUDA graphs: the answers of the layers run one by one, for any scan
// that fits, and a refusal for one that does not.
#include <algorithm>
#include <optional>
#include <utility>

#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/ops/operator_calls.hpp>
#include <pumice/ops/plan_record.hpp>

#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;

/// A network on a stream of its own, as graphs, and the scan that its statistics suit.
struct Captured {
  Captured(const char* name, std::int64_t sites, DType as, const CaptureOptions& options = {})
      : type(as),
        scan(scene_for(name, sites)),
        settled(settled_network(name, scan)),
        network(copy_of(*settled, name, type)) {
    network->to(stream);
    graphs.emplace(network, stream, options);
  }
  SparseTensor forward(const SparseTensor& x) {
    return graphs->forward(x.coordinates->coordinates(), x.features.to(type),
                           x.coordinates->options());
  }
  Answer answer(const SparseTensor& x) { return answer_from(forward(x)); }

  Stream stream{kGpu};
  DType type;
  SparseTensor scan;
  std::shared_ptr<Module> settled;   // on the host
  std::shared_ptr<Module> network;
  std::optional<CapturedNetwork> graphs;
};

class CapturedNetworksGpu : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Networks, CapturedNetworksGpu,
                         ::testing::Values("minkunet42", "centerpoint", "second"));

TEST_P(CapturedNetworksGpu, give_the_answers_of_the_cpu_for_every_scan_that_fits) {
  PUMICE_NEEDS_GPU();
  Captured captured(GetParam(), 4000, DType::f32, {.margin = 1.5});
  const auto on_host = copy_of(*captured.settled, GetParam(), DType::f32);
  std::uint64_t seed = 1;
  for (const std::int64_t sites : {4000, 4100, 3000, 4700, 4000}) {
    const SparseTensor x = scene_for(GetParam(), sites, seed++);
    const Tensor actual = in_key_order(captured.answer(x));
    const Tensor expected = in_key_order(answer_of(*on_host, x));
    EXPECT_LT(relative_difference(actual, expected), 1e-5) << sites;   // the order of sums
  }
  EXPECT_EQ(captured.graphs->graphs().size(), 1u);
}

TEST_P(CapturedNetworksGpu, give_the_same_bits_every_time) {
  PUMICE_NEEDS_GPU();
  Captured captured(GetParam(), 3000, DType::f16);
  const SparseTensor other = scene_for(GetParam(), 2500, 7);
  const Answer first = captured.answer(captured.scan);
  for (int i = 0; i < 100; ++i) {
    (void)captured.forward(other);
    const Answer again = captured.answer(captured.scan);
    ASSERT_TRUE(same_bits(first.coordinates, again.coordinates)) << i;
    ASSERT_TRUE(same_bits(first.features, again.features)) << i;
  }
}

TEST_P(CapturedNetworksGpu, run_the_dataflow_that_is_asked_for) {
  PUMICE_NEEDS_GPU();
  for (const bool deterministic : {false, true}) {
    Captured captured(
        GetParam(), 3000, DType::f32,
        {.dataflow = Dataflow::fetch_on_demand, .numerics = {.deterministic = deterministic}});
    const auto on_host = copy_of(*captured.settled, GetParam(), DType::f32);
    const Tensor expected = in_key_order(answer_of(*on_host, captured.scan));
    const Answer first = captured.answer(captured.scan);
    EXPECT_LT(relative_difference(in_key_order(first), expected), 1e-5);
    (void)captured.forward(scene_for(GetParam(), 2500, 7));
    const Answer again = captured.answer(captured.scan);
    EXPECT_LT(relative_difference(in_key_order(again), expected), 1e-5);
    EXPECT_TRUE(!deterministic || same_bits(first.features, again.features));
  }
}

TEST_P(CapturedNetworksGpu, multiply_in_tf32_where_it_is_asked_for) {
  PUMICE_NEEDS_GPU();
  Captured captured(GetParam(), 3000, DType::f32, {.numerics = {.tf32 = true}});
  const auto on_host = copy_of(*captured.settled, GetParam(), DType::f32);
  const Tensor expected = in_key_order(answer_of(*on_host, captured.scan));
  const double difference =
      relative_difference(in_key_order(captured.answer(captured.scan)), expected);
  EXPECT_LT(difference, 0.05);   // 10 bits of mantissa through some fifty layers
  EXPECT_GT(difference, 0);
}

TEST_P(CapturedNetworksGpu, cut_maps_for_layers_together_and_find_room_for_it) {
  PUMICE_NEEDS_GPU();
  for (const auto& [type, tf32] :
       {std::pair(DType::f16, false), {DType::f32, true}, {DType::f32, false}}) {
    SCOPED_TRACE(::testing::Message() << name_of(type) << (tf32 ? ", tf32" : ""));
    Captured captured(GetParam(), 12000, type, {.numerics = {.tf32 = tf32}});
    const CallRecorder of_another;   // as a tuner has one, which takes nothing away
    PlanRecord record;
    const Answer first = captured.answer(captured.scan);
    const std::vector<RanPlan> ran = record.take();
    const auto is_shared = [](const RanPlan& one) {
      return one.plan->reason.find("other layers on its map") != std::string::npos;
    };
    // Layers of a map have the most different channels there.
    const bool has_to_share = GetParam() == std::string("minkunet42") && type != DType::f16;
    EXPECT_TRUE(std::ranges::any_of(ran, is_shared) || !has_to_share);
    const auto on_host = copy_of(*captured.settled, GetParam(), DType::f32);
    const double bound = type == DType::f16 || tf32 ? 0.05 : 1e-5;
    EXPECT_LT(
        relative_difference(in_key_order(first), in_key_order(answer_of(*on_host, captured.scan))),
        bound);
    EXPECT_TRUE(same_bits(first.features, captured.answer(captured.scan).features));
  }
}

TEST_P(CapturedNetworksGpu, cut_for_each_layer_by_itself_where_that_is_asked_for) {
  PUMICE_NEEDS_GPU();
  Captured captured(GetParam(), 3000, DType::f32, {.shares_cuts = false});
  PlanRecord record;
  const Answer answer = captured.answer(captured.scan);
  const std::vector<RanPlan> ran = record.take();
  EXPECT_FALSE(ran.empty());
  for (const RanPlan& one : ran)
    EXPECT_EQ(one.plan->reason.find("other layers on its map"), std::string::npos);
  const auto on_host = copy_of(*captured.settled, GetParam(), DType::f32);
  EXPECT_LT(
      relative_difference(in_key_order(answer), in_key_order(answer_of(*on_host, captured.scan))),
      1e-5);
}

TEST(CapturedNetworkGpu, records_another_graph_for_another_size_in_the_same_memory) {
  PUMICE_NEEDS_GPU();
  Captured captured("second", 1500, DType::f16);
  const SparseTensor large = scene_for("second", 6000);
  const Answer first_of_large = captured.answer(large);
  const std::int64_t before = cuda_memory_use(kGpu.index).current_bytes;
  const Answer first_of_small = captured.answer(captured.scan);
  // A heap of its own would be a region of 64 MiB at least.
  EXPECT_LT(cuda_memory_use(kGpu.index).current_bytes - before, 32 << 20);
  ASSERT_EQ(captured.graphs->graphs().size(), 2u);
  EXPECT_EQ(captured.graphs->graphs()[0].rows, 2048);
  EXPECT_EQ(captured.graphs->graphs()[1].rows, 8192);
  EXPECT_EQ(captured.graphs->graphs()[0].bytes, captured.graphs->graphs()[1].bytes);
  // Each writes over what the other left.
  for (int turn = 0; turn < 2; ++turn) {
    EXPECT_TRUE(same_bits(captured.answer(large).features, first_of_large.features));
    EXPECT_TRUE(same_bits(captured.answer(captured.scan).features, first_of_small.features));
  }
  EXPECT_EQ(captured.graphs->graphs().size(), 2u);
}

// As a tuner in another thread has them, whose notes keep maps: those of a graph are in memory of
// one pass.
TEST(CapturedNetworkGpu, is_recorded_while_calls_of_all_threads_are_noted) {
  PUMICE_NEEDS_GPU();
  Captured captured("second", 2000, DType::f32);
  CallRecorder recorder;
  const Answer first = captured.answer(captured.scan);
  const std::vector<OperatorCall> learned = recorder.take();
  EXPECT_FALSE(learned.empty());   // the pass before, in lasting memory
  EXPECT_TRUE(same_bits(first.features, captured.answer(captured.scan).features));
  EXPECT_TRUE(recorder.take().empty());
}

TEST(CapturedNetworkGpu, refuses_coordinates_of_another_dimension_after_a_graph_was_recorded) {
  PUMICE_NEEDS_GPU();
  Captured captured("second", 1500, DType::f32);
  (void)captured.forward(captured.scan);
  const std::int64_t rows = captured.scan.coordinates->size();
  const Tensor flat = Tensor::zeros({rows, 3}, DType::i32);
  const Tensor features = Tensor::zeros({rows, captured.scan.features.extent(1)}, DType::f32);
  EXPECT_THROW((void)captured.graphs->forward(flat, features, {}), UserError);
  EXPECT_EQ(captured.graphs->graphs().size(), 1u);
}

TEST(CapturedNetworkGpu, takes_new_weights_with_a_new_graph) {
  PUMICE_NEEDS_GPU();
  Captured captured("second", 2000, DType::f32);
  const Answer before = captured.answer(captured.scan);
  const auto weight = parameter_of(*captured.network, "conv_input.0.weight");
  weight->set(Tensor::zeros(weight->value().shape(), DType::f32, captured.stream));
  const Answer after = captured.answer(captured.scan);
  EXPECT_FALSE(same_bits(before.features, after.features));
  EXPECT_TRUE(same_bits(
      after.features,
      answer_of(*captured.network, on(captured.scan, DType::f32, captured.stream)).features));
}

TEST(CapturedNetworkGpu, refuses_a_scan_that_is_denser_than_there_is_room_for) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  // Sites that stand alone need one offset a tile; side by side they need all 27.
  constexpr std::int32_t kSites = 64000;
  std::vector<std::int32_t> apart;
  std::vector<std::int32_t> together;
  for (std::int32_t i = 0; i < kSites; ++i) {
    const std::int32_t x = i % 40, y = i / 40 % 40, z = i / 1600;
    apart.insert(apart.end(), {0, 10 * x, 10 * y, 10 * z});
    together.insert(together.end(), {0, x, y, z});
  }
  const auto coordinates = [](const std::vector<std::int32_t>& flat) {
    return Tensor::from(std::span<const std::int32_t>(flat),
                        Shape{static_cast<std::int64_t>(flat.size()) / 4, 4});
  };
  auto network = make_network("minkunet42", {.widths = kSmall, .seed = 4});
  network->eval();
  fold(*network);
  network->to(stream);
  CapturedNetwork captured(network, stream, {.margin = 1});
  const Tensor features = random_tensor({kSites, 4}, DType::f32, 2);
  (void)captured.forward(coordinates(apart), features);
  wait(stream);
  const SparseTensor y = captured.forward(coordinates(together), features);
  EXPECT_NE(message_of([&] { wait(stream); }).find("capacity"), std::string::npos);
  const Tensor poisoned = copy_to_host(y.features, stream);
  EXPECT_TRUE(std::isnan(poisoned.data<float>()[0]));
  // What fits is right again.
  (void)captured.forward(coordinates(apart), features);
  EXPECT_EQ(message_of([&] { wait(stream); }), "no error");
}

TEST(CapturedNetworkGpu, refuses_a_coordinate_out_of_bounds) {
  PUMICE_NEEDS_GPU();
  Captured captured("minkunet42", 2000, DType::f16,
                    {.bounds = CoordinateBounds{{-64, -64, -64}, {63, 63, 63}}});
  const SparseTensor& x = captured.scan;
  (void)captured.forward(x);
  captured.stream.wait();
  Tensor far = x.coordinates->coordinates().clone();
  far.data<std::int32_t>()[4 * 17 + 2] = 64;
  (void)captured.graphs->forward(far, x.features.to(DType::f16), x.coordinates->options());
  const std::string message = message_of([&] { captured.stream.wait(); });
  EXPECT_NE(message.find("1 of 2000 coordinates lie outside"), std::string::npos) << message;
}

TEST(CapturedNetworkGpu, refuses_a_dataflow_that_waits) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  CaptureOptions options;
  options.dataflow = Dataflow::gather_gemm_scatter;
  const auto network = make_network("minkunet42", {.widths = kSmall});
  EXPECT_THROW(CapturedNetwork(network, stream, options), UserError);
}

TEST(CapturedNetwork, NeedsAStreamOfACudaDevice) {
  auto network = make_network("second", {.seed = 4});
  EXPECT_NE(
      message_of([&] { CapturedNetwork captured(network, StreamView{}); }).find("stream is of cpu"),
      std::string::npos);
}

}   // namespace
}   // namespace pumice::nn
