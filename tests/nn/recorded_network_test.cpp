// A network that was never run, recorded into a graph of one's own: folded norms, packed weights,
// maps and their tiles are all made while it is recorded, and belong to that graph.
// Covers networks on a device.
#include <gtest/gtest.h>

#include <pumice/core/stream_heap.hpp>
#include <pumice/nn/initialize.hpp>
#include <pumice/nn/linear.hpp>
#include <pumice/nn/sequential.hpp>

#include "core/cuda/graph.hpp"
#include "nn/device_networks.hpp"

namespace pumice::nn {
namespace {

using namespace test;   // NOLINT(google-build-using-namespace): one helper header
using pumice::test::kGpu;
using pumice::test::on_emulator;

std::shared_ptr<Module> network_on(StreamView stream) {
  auto network = std::make_shared<Sequential>(std::vector<ModulePtr>{
      convolution_block(submanifold(4, 8)), std::make_shared<ResidualBlock>(8, 12),
      std::make_shared<ResidualBlock>(12, 12), std::make_shared<Linear>(12, 5)});
  initialize(*network, 5);
  stir(*network);
  network->eval();
  fold(*network);
  network->to(stream);
  return network;
}

TEST(RecordedNetworkGpu, gives_its_answers_and_leaves_other_calls_alone) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const SparseTensor scan = scene_for("minkunet42", on_emulator() ? 40 : 1500);
  const Answer expected = answer_of(*network_on(stream), on(scan, DType::f32, stream));

  const auto network = network_on(stream);
  const SparseTensor x = on(scan, DType::f32, stream);
  stream.wait();
  const auto heap = std::make_shared<StreamHeap>(stream);
  heap->deallocate(heap->allocate(1, stream), 1, stream);   // a recording cannot ask for more
  SparseTensor recorded;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope scope(kGpu, heap);
    Context context;
    recorded = network->forward(x, context);
  });
  // Before it runs, when it runs, and in between.
  EXPECT_TRUE(same_bits(answer_of(*network, x).features, expected.features));
  for (int launch = 0; launch < 2; ++launch) {
    fill_bytes_async(recorded.features.raw(), std::byte{0x77}, recorded.features.bytes(), stream);
    graph.launch();
    EXPECT_TRUE(same_bits(answer_from(recorded).features, expected.features)) << launch;
    EXPECT_TRUE(same_bits(answer_of(*network, x).features, expected.features)) << launch;
  }
}

}   // namespace
}   // namespace pumice::nn
