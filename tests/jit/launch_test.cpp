// Kernels of ours on a device: compiled here, launched with one struct, on streams, threads,
// graphs.
#include "jit/launch.hpp"

#include <limits>
#include <memory>
#include <thread>
#include <vector>

#include <pumice/core/arena.hpp>
#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/tensor.hpp>

#include "core/cuda/graph.hpp"
#include "core/cuda/status.hpp"
#include "jit/module.hpp"
#include "launch_kernels.hpp"
#include "nvrtc_support.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::jit {
namespace {

using test::kGpu;

constexpr int kThreads = 256;

LaunchShape covering(std::int64_t size) {
  return {.blocks = (size + kThreads - 1) / kThreads, .threads = kThreads};
}

/// y += a · x, on a stream of its own.
class Saxpy {
 public:
  explicit Saxpy(std::int64_t size, Device device = kGpu)
      : stream_(device),
        kernel_(load(device, test::launch_source()).kernel("saxpy")),
        x_(Tensor::full(Shape{size}, DType::f32, 3, stream_)),
        y_(Tensor::full(Shape{size}, DType::f32, 1, stream_)) {}

  const Stream& stream() const { return stream_; }
  void enqueue(float a, LaunchShape shape) {
    launch(kernel_, shape, stream_,
           test::SaxpyArguments{a, x_.data<float>(), y_.data<float>(), y_.elements()});
  }
  void enqueue(float a) { enqueue(a, covering(y_.elements())); }
  /// How many elements are not `expected`.
  std::int64_t wrong(float expected) const {
    const Tensor here = copy_to_host(y_, stream_);
    std::int64_t count = 0;
    for (const float value : here.span<float>())
      count += value != expected ? 1 : 0;
    return count;
  }

 private:
  Stream stream_;
  Kernel kernel_;
  Tensor x_;
  Tensor y_;
};

TEST(LaunchGpu, RunsOverEverySize) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  for (const std::int64_t size : {1, 31, 33, 255, 256, 257, 65537, 10000019}) {
    Saxpy saxpy(size);
    saxpy.enqueue(2);
    saxpy.enqueue(10);
    EXPECT_EQ(saxpy.wrong(1 + 3 * 12), 0) << size;
  }
}

TEST(LaunchGpu, OfNoBlocksEnqueuesNothing) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  Saxpy saxpy(33);
  saxpy.enqueue(2, {.blocks = 0});
  EXPECT_EQ(saxpy.wrong(1), 0);
}

TEST(LaunchGpu, SharedMemoryAbove48KiBIsAllowedAtTheLaunch) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  const Kernel kernel = load(kGpu, test::launch_source()).kernel("double_values");
  Tensor values = Tensor::full(Shape{1000}, DType::f32, 1, stream);
  const int most = cuda_device_info(0).shared_bytes;
  float expected = 1;
  for (const int bytes : {1024, 48 << 10, (48 << 10) + 4, most, 1024}) {
    LaunchShape shape = covering(1000);
    shape.shared_bytes = bytes;
    launch(kernel, shape, stream, test::DoubleArguments{values.data<float>(), 1000});
    expected *= 2;
    const Tensor here = copy_to_host(values, stream);
    for (const float value : here.span<float>())
      ASSERT_EQ(value, expected) << bytes;
  }
  LaunchShape shape = covering(1000);
  shape.shared_bytes = most + 1;
  EXPECT_THROW(launch(kernel, shape, stream, test::DoubleArguments{values.data<float>(), 1000}),
               InternalError);
}

TEST(LaunchGpu, ShapesAndArgumentsThatDoNotFitAreRefused) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  const Kernel kernel = load(kGpu, test::launch_source()).kernel("saxpy");
  const test::SaxpyArguments good;
  EXPECT_THROW(launch(kernel, {.threads = 1025}, stream, good), InternalError);
  EXPECT_THROW(launch(kernel, {.threads = 0}, stream, good), InternalError);
  EXPECT_THROW(launch(kernel, {.blocks = -1}, stream, good), InternalError);
  EXPECT_THROW(launch(kernel, {.blocks = std::int64_t{1} << 31}, stream, good), InternalError);
  EXPECT_THROW(launch(kernel, {.blocks_y = 65536}, stream, good), InternalError);
  EXPECT_THROW(launch(kernel, {}, StreamView{}, good), InternalError);
  EXPECT_THROW(launch(Kernel(), {}, stream, good), InternalError);
  if (cuda::driver().cuKernelGetParamInfo == nullptr)
    GTEST_SKIP() << "this driver does not tell the size of a kernel's arguments";
  EXPECT_THROW(launch(kernel, {}, stream, test::DoubleArguments{}), InternalError);
  stream.wait();
}

TEST(LaunchGpu, AKernelsReportIsRaisedByTheWaitWithItsNumbers) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  const Kernel kernel = load(kGpu, test::launch_source()).kernel("report_overflow");
  test::OverflowArguments arguments{cuda::device_status(stream), 91767, 50000,
                                    cuda::status_site("voxels")};
  const std::string said = test::message_of([&] {
    launch(kernel, {.blocks = 100, .threads = 128}, stream, arguments);
    arguments.needed = 1;   // a later trouble does not replace the first
    launch(kernel, {.blocks = 1, .threads = 1}, stream, arguments);
    stream.wait();
  });
  EXPECT_NE(said.find("voxels: 91767 needed, capacity 50000: give a larger capacity"),
            std::string::npos)
      << said;
  stream.wait();
}

TEST(LaunchGpu, IsRecordedIntoAGraphAndReplayed) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  Saxpy saxpy(65537);
  const cuda::Graph graph = cuda::Graph::capture(saxpy.stream(), [&] {
    saxpy.enqueue(1);
    saxpy.enqueue(2);
  });
  EXPECT_EQ(graph.nodes(), 2u);
  EXPECT_EQ(saxpy.wrong(1), 0);
  for (int round = 0; round < 5; ++round)
    graph.launch();
  EXPECT_EQ(saxpy.wrong(1 + 5 * 9), 0);
}

TEST(LaunchGpu, AKernelIsLoadedWhileAGraphIsRecorded) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  constexpr std::int64_t kSize = 1000;
  Tensor x = Tensor::full(Shape{kSize}, DType::f32, 5, stream);
  Tensor y = Tensor::zeros(Shape{kSize}, DType::f32, stream);
  Source source = test::launch_source();
  source.text += "\n// loaded by nobody else\n";
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    launch(load(kGpu, source).kernel("saxpy"), covering(kSize), stream,
           test::SaxpyArguments{1, x.data<float>(), y.data<float>(), kSize});
  });
  graph.launch();
  graph.launch();
  EXPECT_EQ(copy_to_host(y, stream).span<float>()[kSize - 1], 10);
}

TEST(LaunchGpu, AGraphOverASlabAllocatesNothing) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  const Kernel kernel = load(kGpu, test::launch_source()).kernel("saxpy");
  constexpr std::int64_t kSize = 10007;
  Tensor y = Tensor::zeros(Shape{kSize}, DType::f32, stream);
  const auto slab = std::make_shared<ArenaAllocator>(1 << 20, stream);
  stream.wait();
  const std::int64_t before = cuda_memory_use(0).current_bytes;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    const AllocatorScope scope(kGpu, slab);
    const Tensor x = Tensor::full(Shape{kSize}, DType::f32, 5, stream);
    launch(kernel, covering(kSize), stream,
           test::SaxpyArguments{1, x.data<float>(), y.data<float>(), kSize});
  });
  EXPECT_EQ(cuda_memory_use(0).current_bytes, before);
  EXPECT_EQ(graph.nodes(), 2u);   // the fill and the launch
  graph.launch();
  graph.launch();
  EXPECT_EQ(copy_to_host(y, stream).span<float>()[kSize - 1], 10);
}

TEST(LaunchGpu, TwoStreamsAndManyThreadsDoNotDisturbEachOther) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  std::vector<std::int64_t> wrong(4, -1);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      Saxpy saxpy(65537);
      for (int round = 0; round < 50; ++round)
        saxpy.enqueue(static_cast<float>(t));
      wrong[t] = saxpy.wrong(1 + 150 * static_cast<float>(t));
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<std::int64_t>(4, 0));
}

TEST(LaunchGpu, RunsOnASecondDevice) {
  PUMICE_NEEDS_GPUS(2);
  PUMICE_NEEDS_NVRTC();
  Saxpy second(65537, Device{DeviceKind::cuda, 1});
  Saxpy first(65537);
  second.enqueue(2);
  first.enqueue(3);
  EXPECT_EQ(second.wrong(7), 0);
  EXPECT_EQ(first.wrong(10), 0);
}

}   // namespace
}   // namespace pumice::jit
