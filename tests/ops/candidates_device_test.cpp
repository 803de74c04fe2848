// Every plan that comes into question for a device, on generated convolutions, against the
// reference that the CPU's are held beside. PUMICE_RANDOM_PROBLEMS and PUMICE_RANDOM_SEED say how
// many, and where they begin.
//
// Covers convolution on a device, and plans that are given to it.
#include <atomic>
#include <iostream>
#include <mutex>
#include <sstream>

#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>

#include "ops/candidate_check.hpp"
#include "support/gpu.hpp"
#include "support/random_problems.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 700'000;

/// Each pair of channels, type and number of offsets is some 30 kernels to compile.
constexpr CaseChannels kChannels[] = {{16, 16, 1}, {64, 96, 1}, {12, 40, 2}, {8, 8, 8}};

ConvolutionCase draw_candidate_case(std::uint64_t seed) {
  ConvolutionCase c = draw_device_case(seed);
  const CaseChannels& channels = kChannels[seed % std::size(kChannels)];
  c.in_channels = channels.in;
  c.out_channels = channels.out;
  c.groups = channels.groups;
  return c;
}

TEST(CandidatesGpu, agree_with_the_reference) {
  PUMICE_NEEDS_GPU();
  const SeedRange seeds = seeds_from_environment(kSeed, on_emulator() ? 200 : 2000);
  std::mutex mutex;
  CandidateCounts counts;
  check_seeds(
      seeds, [] { return Stream(kGpu); },
      [&](std::uint64_t seed, const Stream& stream) {
        const ConvolutionCase c = draw_candidate_case(seed);
        const bool is_long = c.in_channels != 16 || c.dtype != DType::f16 || c.volume() > 9 ||
                             c.in.size() > 70 || c.target.size() > 70;
        if (on_emulator() && is_long) return std::string();
        CandidateCounts own;
        std::ostringstream text;
        std::string complaint;
        try {
          complaint = check_candidates(c, stream, own, !on_emulator());
        } catch (const Error& error) {
          complaint = error.what();
        }
        if (!complaint.empty()) text << c << "\n  " << complaint;
        const std::scoped_lock lock(mutex);
        for (const auto& [kind, count] : own)
          counts[kind] += count;
        return text.str();
      });
  int plans = 0;
  for (const auto& [kind, count] : counts) {
    plans += count;
    RecordProperty(kind, std::to_string(count));
    std::cout << kind << ": " << count << '\n';
  }
  std::cout << plans << " plans on " << seeds.count << " problems\n";
  EXPECT_GT(plans, 0);
  if (on_emulator() || seeds.count < 2000) return;
  for (const char* direction : {"forward", "input_gradient"}) {
    for (const char* kind :
         {" gather_gemm_scatter", " fetch_on_demand add", " fetch_on_demand slots",
          " implicit_gemm", " implicit_gemm sorted", " implicit_gemm sorted splits add",
          " implicit_gemm sorted splits slots"})
      EXPECT_GE(counts[std::string(direction) + kind], 100) << direction << kind;
  }
  for (const char* kind : {" add", " slots", " add shares", " slots shares"})
    EXPECT_GE(counts[std::string("weight_gradient sum_over_pairs") + kind], 100) << kind;
}

}   // namespace
}   // namespace pumice::test
