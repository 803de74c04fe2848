// Networks in room for many more rows than there are, as graphs run them, in memory that nobody
// wrote before: no kernel reads a row past the count, nor anything else that is not there. On a
// driver that knows which memory was written (PUMICE_FAKE_DRIVER=initcheck, or initcheck of
// NVIDIA's compute-sanitizer) such a read fails; the answers are compared anywhere.
// Covers networks on a device.
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/nn/activation.hpp>
#include <pumice/nn/captured_network.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/join.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/pooling.hpp>
#include <pumice/nn/sequential.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>

#include "formats/cuda/map_plan.hpp"
#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

/// Layers that are fused nowhere else, each behind one that leaves rows past the count alone.
class EveryLayer final : public Module {
 public:
  EveryLayer()
      : first_(add_child("first", convolution_block(submanifold(4, 8)))),
        block_(add_child("block", std::make_shared<ResidualBlock>(8, 12))),
        down_(add_child("down",
                        std::make_shared<Convolution>(halving(12, ConvolutionMode::strided)))),
        layer_norm_(add_child("layer_norm", std::make_shared<LayerNorm>(12))),
        pool_(add_child(
            "pool", std::make_shared<Pool>(Pooling::max,
                                           KernelWindow{.size = axes(3, 3), .padding = axes(3, 1)},
                                           StridedOutputs::dilating))),
        up_(add_child("up", std::make_shared<Convolution>(halving(12, ConvolutionMode::inverse)))),
        instance_norm_(add_child("instance_norm", std::make_shared<InstanceNorm>(12))),
        joined_(add_child("joined", std::make_shared<ResidualBlock>(24, 12, 3, NormOptions{}, 12))),
        linear_(add_child("linear", std::make_shared<Linear>(12, 8))),
        last_(add_child("last", std::make_shared<Linear>(8, 5))) {}

  SparseTensor forward(SparseTensor x, Context& context) override {
    x = block_->forward(first_->forward(std::move(x), context), context);
    SparseTensor y = down_->forward(x, context);
    y = pool_->forward(layer_norm_->forward(std::move(y), context), context);
    y = instance_norm_->forward(up_->forward(std::move(y), context), context);
    y = joined_->forward(std::move(y), x, context);
    y = silu_.forward(linear_->forward(add(y, x, context), context), context);
    return last_->forward(std::move(y), context);
  }

 private:
  static ConvolutionSpec halving(std::int64_t channels, ConvolutionMode mode) {
    return {.in_channels = channels,
            .out_channels = channels,
            .window = {.size = axes(3, 2), .stride = axes(3, 2)},
            .mode = mode,
            .outputs = StridedOutputs::cell,
            .bias = true};
  }

  std::shared_ptr<Sequential> first_;
  std::shared_ptr<ResidualBlock> block_;
  std::shared_ptr<Convolution> down_;
  std::shared_ptr<LayerNorm> layer_norm_;
  std::shared_ptr<Pool> pool_;
  std::shared_ptr<Convolution> up_;
  std::shared_ptr<InstanceNorm> instance_norm_;
  std::shared_ptr<ResidualBlock> joined_;
  std::shared_ptr<Linear> linear_;
  std::shared_ptr<Linear> last_;
  Activate silu_{Activation::silu};
};

/// Plans are chosen for the scan that was learned from, not for the room.
void expect_plans_for_the_same_rows(const SparseTensor& x, const cuda::MapPlan::Made& made) {
  const Tensor weight({1, x.channels(), x.channels()}, x.features.dtype(), x.features.stream());
  const auto rows_of = [&](const KernelMap& map) {
    const ConvolutionProblem problem = convolution_problem(x.features, weight, map.view(), {});
    return std::pair(problem.in_rows, problem.out_rows);
  };
  const std::vector<KernelMapPtr> learned = x.maps->maps(), planned = made.maps->maps();
  ASSERT_EQ(planned.size(), learned.size());
  for (std::size_t i = 0; i < learned.size(); ++i)
    EXPECT_EQ(rows_of(*planned[i]), rows_of(*learned[i])) << "map " << i;
}

/// As a graph runs it, without being one: the allocator gives other memory every time.
/// `stream` has to live as long as the network, whose weights are in its memory then.
void expect_right_in_much_room(Module& network, const SparseTensor& on_host, DType type,
                               const Stream& stream, std::optional<Dataflow> dataflow = {}) {
  network.to(stream);
  const SparseTensor x = on(on_host, type, stream);
  Context context;
  context.dataflow = dataflow;
  context.numerics.deterministic = true;
  const Answer expected = answer_from(network.forward(x, context));
  const std::int64_t rows = x.rows(), room = 5 * rows + 3;
  const cuda::MapPlan plan(
      *x.maps, x.coordinates,
      {.rows = room, .bounds = x.coordinates->options().bounds.value(), .margin = 1});
  Tensor coordinates({room, 4}, DType::i32, stream);
  Tensor features({room, x.channels()}, type, stream);
  const auto count = std::make_shared<Buffer<std::int64_t>>(1, stream);
  const auto fill = [&](Tensor& to, const Tensor& from) {
    copy_async(to.raw(), kGpu, from.raw(), kGpu, from.bytes(), stream);
  };
  fill(coordinates, x.coordinates->coordinates());
  fill(features, x.features);
  copy_async(count->data(), kGpu, &rows, {}, sizeof(rows), stream);
  for (int run = 0; run < 2; ++run) {   // without tiles of this room, and with them
    const cuda::MapPlan::Made made = plan.make(
        coordinates,
        RowCount::on_device(std::shared_ptr<std::int64_t>(count, count->data()), room, kGpu));
    expect_plans_for_the_same_rows(x, made);
    SparseTensor y(made.input, features, made.maps);
    y.has_open_tail = true;
    y = network.forward(std::move(y), context);
    const Answer actual = answer_from(y);
    EXPECT_LT(relative_difference(in_key_order(actual), in_key_order(expected)),
              type == DType::f32 ? 1e-5 : 1e-2);
  }
}

SparseTensor scene() {
  return scene_for("minkunet42", on_emulator() ? 40 : 1500);
}

/// Without this, nothing that the other tests do not find would mean anything.
TEST(UnwrittenMemoryGpu, is_noticed) {
  PUMICE_NEEDS_GPU();
  const char* behaviour = std::getenv("PUMICE_FAKE_DRIVER");
  if (behaviour == nullptr || std::string_view(behaviour) != "initcheck")
    GTEST_SKIP() << "needs a driver that knows which memory was written";
  const Stream stream(kGpu);
  Tensor half({8, 4}, DType::f32, stream);
  fill_bytes_async(half.raw(), std::byte{0}, half.bytes() / 2, stream);
  try {
    (void)activate(half, Activation::relu);
    FAIL() << "nobody noticed";
  } catch (const Error& error) {
    const std::string said = error.what();
    EXPECT_NE(said.find("4 reads of memory that nobody wrote"), std::string::npos) << said;
    EXPECT_NE(said.find("of 128 in its block"), std::string::npos) << said;
  }
}

TEST(UnwrittenMemoryGpu, is_read_by_no_layer) {
  PUMICE_NEEDS_GPU();
  for (const bool folds : {false, true}) {
    SCOPED_TRACE(folds ? "folded" : "layer by layer");
    const Stream stream(kGpu);
    EveryLayer network;
    initialize(network, 5);
    stir(network);
    network.eval();
    if (folds) fold(network);
    expect_right_in_much_room(network, scene(), DType::f32, stream);
  }
}

TEST(UnwrittenMemoryGpu, is_read_by_no_dataflow) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  EveryLayer network;
  initialize(network, 5);
  network.eval();
  fold(network);
  expect_right_in_much_room(network, scene(), DType::f32, stream, Dataflow::fetch_on_demand);
}

TEST(UnwrittenMemoryGpu, is_read_by_no_graph) {
  PUMICE_NEEDS_GPU();
  const SparseTensor x = scene();
  for (const auto dataflow :
       {std::optional<Dataflow>{}, std::optional(Dataflow::fetch_on_demand)}) {
    const Stream stream(kGpu);
    const auto network = std::make_shared<EveryLayer>();
    initialize(*network, 5);
    network->eval();
    if (dataflow) fold(*network);
    const Tensor expected = in_key_order(answer_of(*network, x));
    network->to(stream);
    CapturedNetwork graphs(network, stream,
                           {.dataflow = dataflow, .numerics = {.deterministic = true}});
    for (int launch = 0; launch < 2; ++launch) {
      const Answer actual = answer_from(
          graphs.forward(x.coordinates->coordinates(), x.features, x.coordinates->options()));
      EXPECT_LT(relative_difference(in_key_order(actual), expected), 1e-5);
    }
  }
}

/// Whose sites the host makes, also while a graph is recorded.
TEST(UnwrittenMemoryGpu, is_read_by_no_graph_that_ends_in_a_row_for_each_item) {
  PUMICE_NEEDS_GPU();
  const SparseTensor x = scene();
  const Stream stream(kGpu);
  const auto network = std::make_shared<Sequential>(
      std::vector<ModulePtr>{std::make_shared<Convolution>(submanifold(4, 8)),
                             std::make_shared<GlobalPool>(Pooling::average)});
  initialize(*network, 5);
  network->eval();
  const Answer expected = answer_of(*network, x);
  network->to(stream);
  CapturedNetwork graphs(network, stream);
  for (int launch = 0; launch < 2; ++launch) {
    const Answer actual = answer_from(
        graphs.forward(x.coordinates->coordinates(), x.features, x.coordinates->options()));
    EXPECT_TRUE(same_bits(actual.coordinates, expected.coordinates));
    EXPECT_LT(relative_difference(actual.features, expected.features), 1e-5);
  }
}

TEST(UnwrittenMemoryGpu, is_read_by_no_network) {
  PUMICE_NEEDS_GPU();
  for (const char* name : {"minkunet42", "centerpoint", "second"}) {
    if (on_emulator() && std::string_view(name) != "minkunet42") continue;   // minutes to compile
    SCOPED_TRACE(name);
    const SparseTensor x = scene_for(name, on_emulator() ? 40 : 1500);
    const Stream stream(kGpu);
    const auto network = copy_of(*settled_network(name, x), name, DType::f16);
    expect_right_in_much_room(*network, x, DType::f16, stream);
  }
}

}   // namespace
}   // namespace pumice::nn
