// Work recorded once and launched as often as one likes.
#include "core/cuda/graph.hpp"

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>

#include "core/cuda/status.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::cuda {
namespace {

TEST(GraphGpu, RunsWhenLaunchedNotWhenRecorded) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Tensor value = Tensor::full(Shape{1000}, DType::f32, 1, stream);
  const Graph graph = Graph::capture(stream, [&] {
    EXPECT_TRUE(is_capturing(stream));
    fill_async(value.view(), 2, stream);
  });
  EXPECT_FALSE(is_capturing(stream));
  EXPECT_EQ(graph.nodes(), 1u);
  EXPECT_EQ(copy_to_host(value, stream).span<float>()[999], 1);
  graph.launch();
  EXPECT_EQ(copy_to_host(value, stream).span<float>()[999], 2);
}

TEST(GraphGpu, RecordingMayNotWait) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const auto record = [&] { const Graph graph = Graph::capture(stream, [&] { stream.wait(); }); };
  EXPECT_EQ(test::message_of(record),
            "a stream cannot be waited for while it is captured into a graph: read counts and copy "
            "results after the capture");
  EXPECT_FALSE(is_capturing(stream));   // and the stream is as it was
  stream.wait();
}

TEST(GraphGpu, TheDefaultStreamIsRefused) {
  PUMICE_NEEDS_GPU();
  EXPECT_EQ(test::message_of([&] {
              (void)Graph::capture({test::kGpu, nullptr}, [] {});
            }),
            "the default stream cannot be recorded into a graph: make a Stream");
  EXPECT_EQ(test::message_of([&] { (void)Graph::capture({}, [] {}); }),
            "a graph is recorded on a CUDA device, not cpu");
}

TEST(GraphGpu, TroubleOfEveryLaunchReachesItsStream) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const StatusRecord record{.claim = 1, .code = kPoisonedInput};
  const Tensor source =
      copy_to(stream, ConstTensorView(&record, DType::u8, Shape{std::int64_t{sizeof(record)}}));
  const Graph graph = Graph::capture(stream, [&] {
    copy_async(device_status(stream), test::kGpu, source.raw(), test::kGpu, sizeof(record), stream);
  });
  for (int round = 0; round < 3; ++round) {
    graph.launch();
    EXPECT_THROW(stream.wait(), UserError);
    stream.wait();
  }
}

}   // namespace
}   // namespace pumice::cuda
