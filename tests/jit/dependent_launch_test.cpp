// Which kernels wait for the grid before them, and which launches may be early. Run with dependent
// launches on and off by the fake driver (tests/CMakeLists.txt); results on any device.
#include "jit/dependent_launch.hpp"

#include <dlfcn.h>

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/core/tensor.hpp>

#include "core/cuda/context.hpp"
#include "core/cuda/graph.hpp"
#include "core/environment.hpp"
#include "jit/launch.hpp"
#include "jit/module.hpp"
#include "launch_kernels.hpp"
#include "nvrtc_support.hpp"
#include "support/gpu.hpp"
#include "support/message_of.hpp"

namespace pumice::jit {
namespace {

using test::kGpu;

TEST(DependentLaunch, IsOnOrOff) {
  EXPECT_TRUE(parse_dependent_launches(""));
  EXPECT_FALSE(parse_dependent_launches("off"));
  EXPECT_TRUE(parse_dependent_launches("on"));
  EXPECT_EQ(test::message_of([] { (void)parse_dependent_launches("1"); }),
            "PUMICE_DEPENDENT_LAUNCH = \"1\": it is on or off");
}

TEST(DependentLaunch, IsOfKernelsThatWaitWhereDevicesHaveIt) {
  Source source = test::launch_source();
  for (const char* architecture : {"sm_90a", "sm_100", "sm_120"})
    EXPECT_TRUE(waits_by_itself(source, architecture));
  EXPECT_FALSE(waits_by_itself(source, "sm_89"));
  source.waits = false;
  EXPECT_FALSE(waits_by_itself(source, "sm_90a"));
}

/// What the fake driver says of this thread's launches since the last call.
std::string launches_so_far() {
  void* const driver = dlopen(environment::cuda_driver().c_str(), RTLD_NOW | RTLD_NOLOAD);
  auto* const ask =
      reinterpret_cast<const char* (*)()>(dlsym(driver, "pumice_fake_driver_launches"));
  return ask();
}

/// Forgets the launches so far; a device tells nothing of them.
void forget_launches() {
  if (test::on_emulator()) (void)launches_so_far();
}

/// That launches since then were early where `launches` has an 'o', and the setting is on.
void expect_launches(std::string launches) {
  if (!test::on_emulator()) return;
  if (!dependent_launches()) launches.assign(launches.size(), '.');
  EXPECT_EQ(launches_so_far(), launches);
}

/// y += x, of a million ones, on streams that are given.
class Adder {
 public:
  explicit Adder(const Stream& stream, bool waits = true, bool writes_only_features = false) {
    Source source = test::launch_source();
    source.waits = waits;
    source.writes_only_features = writes_only_features;
    if (!waits) source.text += "// by itself\n";
    kernel_ = load(kGpu, source).kernel("saxpy");
    x_ = Tensor::full(Shape{kSize}, DType::f32, 1, stream);
    y_ = Tensor::zeros(Shape{kSize}, DType::f32, stream);
  }
  void add(const Stream& stream) {
    const test::SaxpyArguments arguments{1, x_.data<float>(), y_.data<float>(), kSize};
    launch(kernel_, {.blocks = (kSize + 255) / 256, .threads = 256}, stream, arguments);
  }
  /// As a library that is not ours launches.
  void add_as_another(const Stream& stream) {
    const test::SaxpyArguments arguments{1, x_.data<float>(), y_.data<float>(), kSize};
    void* list[] = {const_cast<test::SaxpyArguments*>(&arguments)};
    const cuda::LaunchConfig config{
        .grid_x = (kSize + 255) / 256, .block_x = 256, .stream = cuda::handle_of(stream)};
    PUMICE_CUDA(cuLaunchKernelEx(
        &config, reinterpret_cast<cuda::FunctionHandle>(kernel_.loaded().handle), list, nullptr));
  }
  void clear(const Stream& stream) { fill_async(y_.view(), 0, stream); }
  /// How many elements are not `expected`.
  int wrong(const Stream& stream, float expected) const {
    int count = 0;
    const Tensor here = copy_to_host(y_, stream);
    for (const float value : here.span<float>())
      count += value != expected ? 1 : 0;
    return count;
  }

 private:
  static constexpr std::int64_t kSize = 1 << 20;
  Kernel kernel_;
  Tensor x_, y_;
};

TEST(DependentLaunchGpu, OfAChainOfRecordedKernelsAddsUp) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  Adder adder(stream);
  forget_launches();
  constexpr int kLaunches = 40;
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    for (int i = 0; i < kLaunches; ++i)
      adder.add(stream);
  });
  expect_launches("." + std::string(kLaunches - 1, 'o'));
  for (int round = 1; round <= 5; ++round) {
    graph.launch();
    EXPECT_EQ(adder.wrong(stream, static_cast<float>(round * kLaunches)), 0) << round;
  }
}

TEST(DependentLaunchGpu, ComesRightAfterKernelsOfOursAlone) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  Adder adder(stream), by_itself(stream, false);
  forget_launches();
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    adder.clear(stream);            // a fill
    adder.add(stream);              // after a fill
    adder.add(stream);              // early
    adder.clear(stream);            // a fill
    adder.add(stream);              // after a fill
    adder.add(stream);              // early
    adder.add_as_another(stream);   // of whom nobody knows whether it waits
    adder.add(stream);              // after it
    by_itself.add(stream);          // does not wait by itself
    adder.add(stream);              // early, for the one before it came in its turn
    adder.add(stream);              // early
  });
  expect_launches("..o..o...oo");
  graph.launch();
  graph.launch();
  EXPECT_EQ(adder.wrong(stream, 6), 0);
  EXPECT_EQ(by_itself.wrong(stream, 2), 0);
}

TEST(DependentLaunchGpu, LetsTheNextKernelReadAheadWhereOnlyFeaturesAreWritten) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu), other(kGpu);
  Adder of_maps(stream), of_features(stream, true, true), by_itself(stream, false, true);
  stream.wait();
  std::string ahead;   // for what is launched next
  const auto ask = [&](const Stream& of) { ahead += may_read_ahead(of) ? 'a' : '.'; };
  of_features.add(stream);
  ask(stream);   // of what is not recorded nobody knows
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] {
    ask(stream);   // first of all
    of_features.add(stream);
    ask(stream);   // yes
    ask(other);    // of another stream
    of_maps.add(stream);
    ask(stream);   // after a kernel that may write a map
    of_features.add(stream);
    of_features.clear(stream);
    ask(stream);   // after a fill, which may be of a map
    of_features.add(stream);
    of_features.add_as_another(stream);
    ask(stream);   // after a kernel of others
    by_itself.add(stream);
    ask(stream);   // yes: that one came in its turn, so what is before it has ended
  });
  EXPECT_EQ(ahead, dependent_launches() ? "..a....a" : "........");
  graph.launch();
  EXPECT_EQ(of_maps.wrong(stream, 1), 0);
  EXPECT_EQ(by_itself.wrong(stream, 1), 0);
}

TEST(DependentLaunchGpu, OutsideOfRecordingsIsNone) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream stream(kGpu);
  Adder adder(stream);
  forget_launches();
  for (int i = 0; i < 3; ++i)
    adder.add(stream);
  const cuda::Graph graph = cuda::Graph::capture(stream, [&] { adder.add(stream); });
  expect_launches("....");
  graph.launch();
  EXPECT_EQ(adder.wrong(stream, 4), 0);
}

TEST(DependentLaunchGpu, KnowsRecordingsApart) {
  PUMICE_NEEDS_GPU();
  PUMICE_NEEDS_NVRTC();
  const Stream first(kGpu), second(kGpu);
  Adder one(first), two(second);
  first.wait();
  second.wait();
  forget_launches();
  std::vector<cuda::Graph> graphs;
  graphs.push_back(cuda::Graph::capture(first, [&] {
    one.add(first);
    one.add(first);   // early
    const cuda::RelaxedCapture relaxed;
    graphs.push_back(cuda::Graph::capture(second, [&] {
      two.add(second);
      two.add(second);   // early
    }));
    one.add(first);   // of another recording than the last
    one.add(first);   // early
  }));
  expect_launches(".o.o.o");
  for (const cuda::Graph& graph : graphs)
    graph.launch();
  EXPECT_EQ(one.wrong(first, 4), 0);
  EXPECT_EQ(two.wrong(second, 2), 0);
}

}   // namespace
}   // namespace pumice::jit
