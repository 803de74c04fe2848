// Parallel loops: each chunk once, the same cut for any number of threads, errors come out.
#include <pumice/core/parallel.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>

namespace pumice {
namespace {

struct ThreadsRestored : testing::Test {
  ~ThreadsRestored() override { set_threads(0); }
};
using Parallel = ThreadsRestored;

TEST_F(Parallel, VisitsEveryElementOnceWithTheSameCut) {
  for (const std::int64_t size : {0, 1, 31, 33, 65537}) {
    std::set<std::pair<std::int64_t, std::int64_t>> cuts[2];
    for (const int threads : {1, 3}) {
      set_threads(threads);
      std::vector<std::atomic<int>> visits(static_cast<std::size_t>(size));
      std::mutex mutex;
      parallel_for(size, 100, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i)
          ++visits[static_cast<std::size_t>(i)];
        const std::lock_guard lock(mutex);
        cuts[threads == 1 ? 0 : 1].emplace(begin, end);
      });
      for (const auto& count : visits)
        EXPECT_EQ(count.load(), 1);
    }
    EXPECT_EQ(cuts[0], cuts[1]);
  }
}

TEST_F(Parallel, RethrowsWhatAChunkThrows) {
  for (const int threads : {1, 2}) {
    set_threads(threads);
    EXPECT_THROW(parallel_for(1000, 10,
                              [](std::int64_t begin, std::int64_t) {
                                if (begin == 500) throw std::out_of_range("here");
                              }),
                 std::out_of_range);
  }
}

TEST_F(Parallel, TakesTheNumberOfThreadsItIsGiven) {
  set_threads(3);
  EXPECT_EQ(threads(), 3);
  EXPECT_THROW(set_threads(-1), UserError);
  EXPECT_EQ(threads(), 3);
}

TEST_F(Parallel, KeepsCtrlCFromItsThreads) {
  const auto blocks = [](int signal) {
    sigset_t set;
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    return sigismember(&set, signal) == 1;
  };
  set_threads(3);
  const auto caller = std::this_thread::get_id();
  const bool before = blocks(SIGINT);
  const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  std::atomic<bool> another_came{false};
  parallel_for(64, 1, [&](std::int64_t, std::int64_t) {
    if (std::this_thread::get_id() == caller) {
      while (!another_came && std::chrono::steady_clock::now() < end)
        std::this_thread::yield();
      return;
    }
    EXPECT_TRUE(blocks(SIGINT));
    EXPECT_FALSE(blocks(SIGTERM) || blocks(SIGPROF) || blocks(SIGSEGV));
    another_came = true;
  });
  EXPECT_TRUE(another_came);
  EXPECT_EQ(blocks(SIGINT), before) << "of the caller nothing changes";
}

TEST(Random, IsTheSameEverywhere) {
  Random random(42);
  EXPECT_EQ(random.bits(), Random(42).bits());
  EXPECT_NE(Random(42, 1).bits(), Random(42, 2).bits());
  Random numbers(1);
  double sum = 0;
  double squares = 0;
  for (int i = 0; i < 100000; ++i) {
    const double value = numbers.normal();
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1e5, 0, 4 / std::sqrt(1e5));             // four deviations of a mean
  EXPECT_NEAR(squares / 1e5, 1, 4 * std::sqrt(2.0 / 1e5));   // and of a variance
  for (int i = 0; i < 1000; ++i) {
    const std::int64_t value = numbers.integer(-3, 3);
    EXPECT_GE(value, -3);
    EXPECT_LE(value, 3);
  }
}

}   // namespace
}   // namespace pumice
