// Work recorded once and launched as often as one likes.
#include "core/cuda/graph.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/row_count.hpp>
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

TEST(GraphGpu, LooksAtTroubleAtEveryLaunch) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Tensor seen = Tensor::full(Shape{1}, DType::i32, -1, stream);
  const Graph graph =
      Graph::capture(stream, [&] { copy_trouble(stream, seen.data<std::int32_t>()); });
  const auto launched = [&] {
    graph.launch();
    stream.wait();
    return copy_to_host(seen, stream).span<std::int32_t>()[0];
  };
  EXPECT_EQ(launched(), 0);
  const StatusRecord record{.claim = 1, .code = kPoisonedInput};
  copy_async(device_status(stream), test::kGpu, &record, Device{}, sizeof(record), stream);
  EXPECT_THROW((void)launched(), UserError);
  EXPECT_EQ(copy_to_host(seen, stream).span<std::int32_t>()[0], kPoisonedInput);
  EXPECT_EQ(launched(), 0);
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

/// A graph would go to that memory at every launch, and what a copy from a local variable read then
/// is not what it was.
TEST(GraphGpu, RecordsNoCopyFromOrToHostMemory) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Tensor there = Tensor::zeros(Shape{4}, DType::i32, stream);
  Tensor here = Tensor::zeros(Shape{4}, DType::i32);
  const auto expect_refused = [&](const std::function<void()>& copy, const std::string& part) {
    const std::string said =
        test::message_of([&] { const Graph graph = Graph::capture(stream, copy); });
    EXPECT_NE(said.find(part), std::string::npos) << said;
    EXPECT_FALSE(is_capturing(stream));
  };
  expect_refused(
      [&] { copy_async(there.view(), here, stream); },
      "a copy from host memory is recorded into a graph on cuda:0, which would go to that "
      "memory at every launch, whether it is still there or not: copy before the "
      "recording begins, or after the launch");
  expect_refused([&] { copy_async(here.view(), there, stream); }, "a copy to host memory");
  expect_refused([&] { (void)copy_to(stream, here); }, "a copy from host memory");
  expect_refused([&] { (void)copy_to_host(there, stream); }, "cannot be waited for");
  const std::shared_ptr<std::int64_t> count(new std::int64_t(0));
  expect_refused([&] { (void)RowCount::on_device(count, 4, test::kGpu).wait_for_host(stream); },
                 "cannot be waited for");
}

TEST(GraphGpu, EveryRecordingHasANumberOfItsOwn) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  const Stream other(test::kGpu);
  std::uint64_t first = 0, second = 0;
  Graph::capture(stream, [&] {
    first = capture_of(stream);
    EXPECT_EQ(capture_of(stream), first);
    EXPECT_EQ(capture_of(other), 0u);
  });
  Graph::capture(stream, [&] { second = capture_of(stream); });
  EXPECT_NE(first, 0u);
  EXPECT_NE(second, 0u);
  EXPECT_NE(first, second);
  EXPECT_EQ(capture_of(stream), 0u);
  EXPECT_EQ(capture_of(StreamView{}), 0u);
}

/// As at the first report on a stream, or the first launch of a kernel.
TEST(GraphGpu, TakingMemoryFromTheSystemDoesNotEndARecording) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Tensor value = Tensor::zeros(Shape{10}, DType::f32, stream);
  std::vector<Stream> others;   // so many that their reports need another page of host memory
  for (int i = 0; i < 100; ++i)
    others.emplace_back(test::kGpu);
  const Graph graph = Graph::capture(stream, [&] {
    fill_async(value.view(), 2, stream);
    for (const Stream& other : others)
      EXPECT_NE(device_status(other), nullptr);
    fill_async(value.view(), 3, stream);
  });
  graph.launch();
  EXPECT_EQ(copy_to_host(value, stream).span<float>()[9], 3);
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
