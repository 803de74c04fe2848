// Which generated problems a test runs, and on how many threads: numbers from the environment.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

namespace pumice::test {

/// What an environment variable holds, where it is set.
inline std::optional<std::uint64_t> number_from(const char* variable) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? std::nullopt : std::optional<std::uint64_t>(std::stoull(text));
}

struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};

/// PUMICE_RANDOM_PROBLEMS of them, from PUMICE_RANDOM_SEED on: several machines can share the work.
inline SeedRange seeds_from_environment(std::uint64_t first, std::uint64_t count) {
  return {number_from("PUMICE_RANDOM_SEED").value_or(first),
          number_from("PUMICE_RANDOM_PROBLEMS").value_or(count)};
}

/// Calls check(seed, state) for every seed on all cores, each thread with a state of its own that
/// `make_state` made. What a check complains about, or throws, is a failure; after three of them
/// the others are left out, since the first ones say what is wrong.
template <class MakeState, class Check>
void check_seeds(const SeedRange& seeds, MakeState&& make_state, Check&& check) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;
  std::vector<std::string> complaints;
  const auto work = [&] {
    auto state = make_state();
    for (std::uint64_t i = next++; i < seeds.count; i = next++) {
      std::string complaint;
      try {
        complaint = check(seeds.first + i, state);
      } catch (const std::exception& error) {
        complaint = "seed " + std::to_string(seeds.first + i) + ": " + error.what();
      }
      if (complaint.empty()) continue;
      const std::lock_guard lock(mutex);
      complaints.push_back(complaint);
      if (complaints.size() >= 3) next = seeds.count;
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i)
    threads.emplace_back(work);
  for (std::thread& thread : threads)
    thread.join();
  for (const std::string& complaint : complaints)
    ADD_FAILURE() << complaint;
}

}   // namespace pumice::test
