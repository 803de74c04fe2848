// What a fuzz target is: a reader fed with any bytes at all. It may refuse them with a UserError;
// it may not crash, read out of bounds, throw anything else, break its promises about what it
// returns, or take memory out of proportion to its input.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <pumice/core/allocator.hpp>
#include <pumice/core/error.hpp>
#include <pumice/points/point_cloud.hpp>

namespace pumice::fuzz {

using Bytes = std::span<const std::byte>;

/// Reads the bytes and checks what comes of it; true when they were accepted. One a target.
bool read_and_check(Bytes bytes);

/// Files that must be accepted, from which mutation starts. One a target.
std::vector<std::string> seeds();

/// Ends the program, which is how a fuzzer learns of a finding.
[[noreturn]] inline void found(const char* what) {
  std::fprintf(stderr, "fuzzing found: %s\n", what);
  std::abort();
}

/// Most memory a reader may take: deflate grows 1032 times, a point in memory 16 times its bytes.
inline std::int64_t memory_limit(Bytes bytes) {
  return (std::int64_t{1} << 20) + 32768 * static_cast<std::int64_t>(bytes.size());
}

/// Runs `read` on bytes, taking a UserError for an answer.
template <class Read> bool accepts(Bytes bytes, Read&& read) {
  reset_cpu_memory_peak();
  const std::int64_t before = cpu_memory_use().current_bytes;
  bool accepted = true;
  try {
    read();
  } catch (const UserError& error) {
    if (std::string(error.what()).empty()) found("a refusal without a word");
    accepted = false;
  }
  if (cpu_memory_use().peak_bytes - before > memory_limit(bytes)) found("memory out of proportion");
  return accepted;
}

/// Checks the promises of a cloud that a reader returned.
void check_cloud(const PointCloud& cloud);

}   // namespace pumice::fuzz
