// Calls are counted, and what is said of them are numbers that were measured.
#include "cli/measure.hpp"

#include <chrono>
#include <cmath>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/parallel.hpp>

namespace pumice::cli {
namespace {

TEST(Measure, CallsOnceMoreThanItCounts) {
  for (const int repeat : {1, 2, 5}) {
    int calls = 0;
    const Spread ms = measure(repeat, {}, [&] { ++calls; });
    EXPECT_EQ(calls, repeat + 1);
    EXPECT_LE(ms.min, ms.median);
    EXPECT_LE(ms.median, ms.max);
  }
}

TEST(Measure, LeavesTheFirstCallOutAndNamesTheExtremes) {
  int calls = 0;
  const Spread ms = measure(3, {}, [&] {
    const int long_ones[] = {400, 1, 1, 60};   // milliseconds: warm-up, then two short, one long
    std::this_thread::sleep_for(std::chrono::milliseconds(long_ones[calls++]));
  });
  EXPECT_GE(ms.min, 1);
  EXPECT_GE(ms.max, 60);
  EXPECT_LT(ms.max, 400);
  EXPECT_LT(ms.median, 60);
}

TEST(Measure, CopiesOfMoreBytesTakeLonger) {
  EXPECT_EQ(copy_ms(0, 3, {}), 0);
  const double small = copy_ms(1 << 10, 3, {});
  EXPECT_GT(small, 0);
  EXPECT_GT(copy_ms(64 << 20, 3, {}), small);
}

TEST(Measure, RandomTensorsAreTheSameForAnyNumberOfThreads) {
  const Shape shape{33, 4099};   // more than one piece of work
  const int before = threads();
  set_threads(1);
  const Tensor one = random_tensor(shape, DType::f32, 7);
  set_threads(2);
  const Tensor two = random_tensor(shape, DType::f32, 7);
  set_threads(before);
  const auto a = one.span<float>(), b = two.span<float>();
  EXPECT_EQ((std::vector<float>(a.begin(), a.end())), (std::vector<float>(b.begin(), b.end())));
  double sum = 0;
  for (const float value : a) {
    EXPECT_GE(value, -1);
    EXPECT_LE(value, 1);
    sum += value;
  }
  EXPECT_LT(std::abs(sum) / static_cast<double>(a.size()), 0.01);
  EXPECT_NE(a[0], random_tensor(shape, DType::f32, 8).span<float>()[0]);
}

TEST(Measure, TheProcessorHasAName) {
  EXPECT_FALSE(model_of({}).empty());
  EXPECT_EQ(proc_value("/proc/meminfo", "NoSuchKey"), "unknown");
  EXPECT_NE(proc_value("/proc/meminfo", "MemTotal").find("kB"), std::string::npos);
}

}   // namespace
}   // namespace pumice::cli
