// Streams and events: on the CPU nothing to wait for, on a device an order.
#include <pumice/core/stream.hpp>

#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>

#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice {
namespace {

TEST(Stream, OfTheCpuIsAlwaysDone) {
  const Stream stream{Device{}};
  EXPECT_EQ(stream.view(), StreamView{});
  stream.wait();
  EXPECT_FALSE(is_capturing(stream));
  Event event{Device{}};
  event.record(stream);
  event.wait();
  order_after(stream, event);
  EXPECT_EQ(test::message_of([&] { (void)milliseconds_between(event, event); }),
            "the time between events is for two timed events of a CUDA device");
}

TEST(Stream, ThatIsNotThereIsRefusedWithTheReason) {
  const CudaSupport& support = cuda_support();
  const int index = support.devices;
  const std::string said = test::message_of([&] {
    const Stream stream(Device{DeviceKind::cuda, index});
  });
  if (support.available) {
    EXPECT_EQ(said, "cuda:" + std::to_string(index) + " is not there: this process sees " +
                        std::to_string(index) + " CUDA device" + (index == 1 ? "" : "s"));
  } else {
    EXPECT_EQ(said, "CUDA is not available: " + support.reason);
    EXPECT_NE(support.reason, "");
  }
}

TEST(StreamGpu, MovesWithItsHandle) {
  PUMICE_NEEDS_GPU();
  Stream stream(test::kGpu);
  const StreamView view = stream;
  Stream moved(std::move(stream));
  EXPECT_EQ(moved.view(), view);
  moved = Stream(test::kGpu);
  EXPECT_EQ(moved.device(), test::kGpu);
  moved.wait();
}

TEST(StreamGpu, OneWaitsForAnotherWithoutTheHost) {
  PUMICE_NEEDS_GPU();
  const Stream first(test::kGpu);
  const Stream second(test::kGpu);
  constexpr std::int64_t kSize = std::int64_t{1} << 22;
  Tensor from = Tensor::zeros(Shape{kSize}, DType::i32, first);
  Tensor to = Tensor::zeros(Shape{kSize}, DType::i32, second);
  for (int round = 1; round <= 20; ++round) {
    fill_async(from.view(), round, first);
    order_after(second, first);
    copy_async(to.view(), from, second);
    order_after(first, second);   // the next fill does not overtake the copy
    const Tensor seen = copy_to_host(to, second);
    EXPECT_EQ(seen.span<std::int32_t>()[0], round);
    EXPECT_EQ(seen.span<std::int32_t>()[kSize - 1], round);
  }
}

TEST(StreamGpu, EventsTellTheTimeBetweenThem) {
  PUMICE_NEEDS_GPU();
  const Stream stream(test::kGpu);
  Event from(test::kGpu, true);
  Event to(test::kGpu, true);
  from.record(stream);
  const Tensor large = Tensor::zeros(Shape{1 << 22}, DType::f32, stream);
  to.record(stream);
  to.wait();
  EXPECT_GT(milliseconds_between(from, to), 0);
  EXPECT_LT(milliseconds_between(from, to), 10000);
}

TEST(StreamGpu, ThreadsUseStreamsOfTheirOwn) {
  PUMICE_NEEDS_GPU();
  std::vector<std::thread> threads;
  std::vector<int> wrong(4, 0);
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      const Stream stream(test::kGpu);
      for (int round = 0; round < 50; ++round) {
        const int value = static_cast<int>(t) * 1000 + round;
        const Tensor there = Tensor::full(Shape{10007}, DType::i32, value, stream);
        const Tensor here = copy_to_host(there, stream);
        for (const std::int32_t got : here.span<std::int32_t>())
          wrong[t] += got != value ? 1 : 0;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4, 0));
}

}   // namespace
}   // namespace pumice
