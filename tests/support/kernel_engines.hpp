// Tests of device code: one body, run by the emulator in several orders of blocks and threads, and
// on a GPU where there is one (suite <name>Gpu, ctest label `gpu`).
//
//   PUMICE_DEVICE_TEST(DeviceSort, SortsLikeStableSort) {
//     const auto runner = make_runner();
//     ...
//   }
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "jit/kernel_runner.hpp"
#include "support/device_emulator.hpp"
#include "support/gpu.hpp"

namespace pumice::test {

/// A runner whose memory the test can read and write too, at any time between two calls: launches
/// are done when they return.
class TestRunner : public jit::KernelRunner {
 public:
  /// What kernels reported.
  const StatusRecord& record() const { return *status(); }
  /// The kernels that ran, in order.
  const std::vector<std::string>& launches() const { return launches_; }
  /// A copy where kernels can read it.
  template <class T> Buffer<T> copy(std::span<const T> values) const {
    Buffer<T> buffer = make<T>(static_cast<std::int64_t>(values.size()));
    std::copy(values.begin(), values.end(), buffer.data());
    return buffer;
  }
  Buffer<std::int64_t> count(std::int64_t rows) const {
    return copy(std::span<const std::int64_t>(&rows, 1));
  }

 protected:
  using KernelRunner::KernelRunner;
  void note_launch(const char* kernel) { launches_.emplace_back(kernel); }

 private:
  std::vector<std::string> launches_;
};

using RunnerMaker = std::function<std::unique_ptr<TestRunner>()>;

/// On the host.
std::unique_ptr<TestRunner> emulated_runner(const EmulatorOptions& options);
/// On device 0, in managed memory.
std::unique_ptr<TestRunner> gpu_runner();

/// The orders of blocks and threads that a test should see.
inline const EmulatorOptions kRunOrders[] = {
    {RunOrder::ascending, RunOrder::ascending},
    {RunOrder::descending, RunOrder::descending},
    {RunOrder::shuffled, RunOrder::shuffled, 7},
};

/// Runs a body once for each of the last `orders` orders.
inline void run_emulated(std::size_t orders, void (*body)(const RunnerMaker&)) {
  for (const EmulatorOptions& order : std::span(kRunOrders).last(orders))
    body([&order] { return emulated_runner(order); });
}

}   // namespace pumice::test

#define PUMICE_DEVICE_TEST_IN_ORDERS(orders, suite, name)                  \
  static void suite##name(const ::pumice::test::RunnerMaker& make_runner); \
  TEST(suite, name) {                                                      \
    ::pumice::test::run_emulated(orders, &suite##name);                    \
  }                                                                        \
  TEST(suite##Gpu, name) {                                                 \
    PUMICE_NEEDS_GPU();                                                    \
    suite##name(&::pumice::test::gpu_runner);                              \
  }                                                                        \
  static void suite##name([[maybe_unused]] const ::pumice::test::RunnerMaker& make_runner)

#define PUMICE_DEVICE_TEST(suite, name) PUMICE_DEVICE_TEST_IN_ORDERS(3, suite, name)
/// For what takes the emulator long: in one order only, a shuffled one.
#define PUMICE_LARGE_DEVICE_TEST(suite, name) PUMICE_DEVICE_TEST_IN_ORDERS(1, suite, name)
