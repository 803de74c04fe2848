// The emulator of device code itself: what it runs, and what it refuses.
// Covers tests/support/device_emulator.
#include "support/device_emulator.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/message_of.hpp"

namespace pumice::test {
namespace {

struct Numbers {
  uint32_t* out;
};

PUMICE_KERNEL PUMICE_THREADS(64) void number_threads(PUMICE_ARGUMENT(Numbers) a) {
  a.out[global_thread_index()] = static_cast<uint32_t>(block_index() * 1000 + thread_index());
}

TEST(DeviceEmulator, EveryThreadOfEveryBlockRunsOnce) {
  std::vector<uint32_t> out(3 * 64, 7);
  for (const RunOrder order : {RunOrder::ascending, RunOrder::descending, RunOrder::shuffled}) {
    emulate({.blocks = 3, .threads = 64}, number_threads, Numbers{out.data()},
            {.blocks = order, .threads = order});
    for (uint32_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], i / 64 * 1000 + i % 64);
  }
}

PUMICE_KERNEL PUMICE_THREADS(256) void reverse_block(PUMICE_ARGUMENT(Numbers) a) {
  using Row = uint32_t[256];
  PUMICE_BLOCK_SHARED(Row, row);
  row[thread_index()] = a.out[global_thread_index()];
  block_sync();
  a.out[global_thread_index()] = row[255 - thread_index()];
}

TEST(DeviceEmulator, BarriersSeparateWritesFromReads) {
  std::vector<uint32_t> out(2 * 256);
  for (const RunOrder order : {RunOrder::ascending, RunOrder::descending, RunOrder::shuffled}) {
    for (uint32_t i = 0; i < out.size(); ++i)
      out[i] = i;
    emulate({.blocks = 2}, reverse_block, Numbers{out.data()}, {.threads = order});
    for (uint32_t i = 0; i < out.size(); ++i)
      EXPECT_EQ(out[i], i / 256 * 256 + 255 - i % 256);
  }
}

struct Collectives {
  uint64_t* out;   // [6, 64]
};

PUMICE_KERNEL PUMICE_THREADS(64) void call_collectives(PUMICE_ARGUMENT(Collectives) a) {
  const int i = thread_index();
  const auto value = static_cast<uint64_t>(i) * 10;
  a.out[i] = warp_shuffle(value, 3);
  a.out[64 + i] = warp_shuffle_up(value, 2);
  a.out[128 + i] = warp_shuffle_down(value, 2);
  a.out[192 + i] = warp_shuffle_xor(value, 5);
  a.out[256 + i] = warp_ballot(i % 3 == 0);
  a.out[320 + i] = warp_match_any(static_cast<uint32_t>(i % 4));
}

TEST(DeviceEmulator, CollectivesStayWithinAWarp) {
  std::vector<uint64_t> out(6 * 64);
  emulate({.threads = 64}, call_collectives, Collectives{out.data()},
          {.threads = RunOrder::shuffled});
  for (uint64_t i = 0; i < 64; ++i) {
    const uint64_t lane = i % 32;
    const uint64_t first = i - lane;
    EXPECT_EQ(out[i], (first + 3) * 10);
    EXPECT_EQ(out[64 + i], (lane < 2 ? i : i - 2) * 10);
    EXPECT_EQ(out[128 + i], (lane > 29 ? i : i + 2) * 10);
    EXPECT_EQ(out[192 + i], (first + (lane ^ 5)) * 10);
    EXPECT_EQ(out[256 + i], first == 0 ? 0x49249249u : 0x92492492u);
    EXPECT_EQ(out[320 + i], 0x11111111u << (i % 4));
  }
}

PUMICE_KERNEL void leave_before_barrier(PUMICE_ARGUMENT(Numbers)) {
  if (thread_index() == 5) return;
  block_sync();
}

PUMICE_KERNEL void diverge_in_warp(PUMICE_ARGUMENT(Numbers)) {
  if (lane_index() == 5) return;
  warp_ballot(true);
}

PUMICE_KERNEL void call_two_collectives(PUMICE_ARGUMENT(Numbers)) {
  if (lane_index() < 16) {
    warp_ballot(true);
  } else {
    warp_any(true);
  }
}

PUMICE_KERNEL void declare_too_much(PUMICE_ARGUMENT(Numbers)) {
  using Row = uint32_t[20000];
  PUMICE_BLOCK_SHARED(Row, row);
  row[0] = 0;
}

std::string refusal(void (*kernel)(const Numbers&)) {
  try {
    emulate({.threads = 64}, kernel, Numbers{});
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

TEST(DeviceEmulator, ADeadlockIsASentence) {
  const std::string text = refusal(leave_before_barrier);
  EXPECT_NE(text.find("1 of 64 threads have returned, 63 wait at block_sync (emulator_test.cpp:"),
            std::string::npos)
      << text;
}

TEST(DeviceEmulator, ALaneThatReturnedIsMissed) {
  const std::string text = refusal(diverge_in_warp);
  EXPECT_NE(text.find("31 lanes of warp 0 wait in warp_ballot"), std::string::npos) << text;
  EXPECT_NE(text.find("for lane 5, which has returned"), std::string::npos) << text;
}

TEST(DeviceEmulator, LanesAtDifferentCollectivesAreNamed) {
  const std::string text = refusal(call_two_collectives);
  EXPECT_NE(text.find("lane 16 of warp 0 calls warp_ballot"), std::string::npos) << text;
  EXPECT_NE(text.find("while others wait in warp_ballot"), std::string::npos) << text;
}

TEST(DeviceEmulator, TooMuchSharedMemoryIsRefused) {
  EXPECT_NE(refusal(declare_too_much).find("80000 bytes; the most is 49152"), std::string::npos);
}

TEST(DeviceEmulator, WorksAgainAfterAFailure) {
  EXPECT_FALSE(refusal(leave_before_barrier).empty());
  std::vector<uint32_t> out(2 * 256);
  emulate({.blocks = 2}, reverse_block, Numbers{out.data()});
  EXPECT_EQ(out[0], 0u);
}

PUMICE_KERNEL void look_at_shared(PUMICE_ARGUMENT(Numbers) a) {
  PUMICE_BLOCK_SHARED(uint32_t, word);
  if (thread_index() == 0) a.out[block_index()] = word;
  block_sync();
  if (thread_index() == 0) word = 0;
}

TEST(DeviceEmulator, SharedMemoryIsGarbageInEveryBlock) {
  std::vector<uint32_t> out(4);
  emulate({.blocks = 4, .threads = 32}, look_at_shared, Numbers{out.data()});
  for (const uint32_t word : out)
    EXPECT_NE(word, 0u);
}

struct Chain {
  const uint32_t* from;
  uint32_t* to;
  uint32_t* early;   // what `from` held before the wait
};

PUMICE_KERNEL void follow(PUMICE_ARGUMENT(Chain) a) {
  const auto i = global_thread_index();
  if (a.early != nullptr) a.early[i] = a.from[i];
  if (thread_index() / kWarpThreads % 2 == 0) warp_sync();   // some come later than others
  wait_for_previous();
  a.to[i] = a.from[i] + 1;
}

TEST(DeviceEmulator, ALaunchThatOverlapsBeginsFirstAndWaits) {
  constexpr EmulatedShape kShape{.blocks = 2, .threads = 64};
  std::vector<uint32_t> zero(128, 0), one(128, 100), two(128, 200), three(128, 300);
  std::vector<uint32_t> early_two(128, 7), early_three(128, 7);
  const auto make_one = [&] { emulate(kShape, follow, Chain{zero.data(), one.data(), nullptr}); };
  const auto make_two = [&] {
    emulate(kShape, follow, Chain{one.data(), two.data(), early_two.data()});
  };
  const auto make_three = [&] {
    emulate(kShape, follow, Chain{two.data(), three.data(), early_three.data()},
            {.blocks = RunOrder::shuffled, .threads = RunOrder::shuffled});
  };
  run_when_waited_for([&] { run_when_waited_for(make_one, make_two); }, make_three);
  EXPECT_EQ(three, std::vector<uint32_t>(128, 3));
  // All threads of one block read before anything was written; the other block came later.
  EXPECT_EQ(std::count(early_two.begin(), early_two.end(), 100u), 64);
  EXPECT_EQ(std::count(early_three.begin(), early_three.end(), 200u), 64);
}

PUMICE_KERNEL void follow_in_part(PUMICE_ARGUMENT(Chain) a) {
  if (thread_index() == 40) return;
  wait_for_previous();
  a.to[global_thread_index()] = a.from[global_thread_index()];
}

TEST(DeviceEmulator, ALaunchThatOverlapsWaitsInEveryThread) {
  std::vector<uint32_t> from(64, 1), to(64, 0);
  const auto follows = [&] {
    emulate({.threads = 64}, follow_in_part, Chain{from.data(), to.data(), nullptr});
  };
  follows();   // alone it is well
  std::string said;
  try {
    run_when_waited_for([] {}, follows);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("thread 40 has returned and never waited for the launch before"),
            std::string::npos)
      << said;
  const auto fails = [] { throw std::runtime_error("the one before"); };
  const auto second = [&] {
    emulate({.threads = 64}, follow, Chain{from.data(), to.data(), nullptr});
  };
  EXPECT_THROW(run_when_waited_for(fails, second), std::runtime_error);
  second();
  EXPECT_EQ(to, std::vector<uint32_t>(64, 2));
}

}   // namespace
}   // namespace pumice::test
