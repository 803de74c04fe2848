// Twenty thousand generated convolutions on a CUDA device, each against the reference that the
// CPU's are held beside: output and every gradient. Threads have streams of their own. A failure
// prints the case, and PUMICE_CASE=<seed> runs that one alone; PUMICE_RANDOM_PROBLEMS and
// PUMICE_RANDOM_SEED say how many there are and where they begin.
// Covers convolution on a device.
#include <atomic>

#include <gtest/gtest.h>

#include <pumice/core/stream.hpp>

#include "ops/convolution_check.hpp"
#include "support/gpu.hpp"
#include "support/random_problems.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 100'000;

/// Empty when the case passes, else the case and what is wrong.
std::string complaint_about(const ConvolutionCase& c, StreamView stream) {
  std::string complaint;
  try {
    complaint = check_case(c, stream);
  } catch (const Error& error) {
    complaint = error.what();
  }
  if (complaint.empty()) return {};
  std::ostringstream text;
  text << c << "\n  " << complaint;
  return text.str();
}

/// The emulator keeps to few rows, and to few kernels, each of which takes seconds to compile.
bool is_long_for_emulator(const ConvolutionCase& c) {
  const bool few_kernels = (c.in_channels == 16 && c.volume() == 27) || c.groups == c.in_channels ||
                           (c.in_channels == 5 && c.out_channels == 33);
  return !few_kernels || c.in.size() > 70 || c.target.size() > 70 || c.volume() > 30;
}

TEST(ConvolutionFuzzGpu, agrees_with_the_reference) {
  PUMICE_NEEDS_GPU();
  const SeedRange seeds = seeds_from_environment(kSeed, on_emulator() ? 2000 : 20'000);
  std::atomic<std::uint64_t> checked{0};
  check_seeds(
      seeds, [] { return Stream(kGpu); },
      [&](std::uint64_t seed, const Stream& stream) {
        const ConvolutionCase c = draw_device_case(seed);
        if (on_emulator() && is_long_for_emulator(c)) return std::string();
        ++checked;
        return complaint_about(c, stream);
      });
  EXPECT_GE(checked, on_emulator() ? seeds.count / 20 : seeds.count);
  RecordProperty("problems", std::to_string(checked));
}

TEST(ConvolutionFuzzGpu, one_case_by_its_seed) {
  PUMICE_NEEDS_GPU();
  const auto seed = number_from("PUMICE_CASE");
  if (!seed) GTEST_SKIP() << "set PUMICE_CASE to a seed to run that case alone";
  const Stream stream(kGpu);
  EXPECT_EQ(complaint_about(draw_device_case(*seed), stream), "");
}

TEST(ConvolutionFuzzGpu, draws_every_kind_of_case) {
  std::set<Mode> modes;
  std::set<DType> dtypes;
  std::set<int> dimensions, batches;
  std::set<std::size_t> rows;
  int grouped = 0, depthwise = 0, large = 0;
  std::int64_t negative = 0;
  for (std::uint64_t seed = kSeed; seed < kSeed + 5000; ++seed) {
    const ConvolutionCase c = draw_device_case(seed);
    modes.insert(c.mode);
    dtypes.insert(c.dtype);
    dimensions.insert(c.dimension);
    rows.insert(c.in.size());
    depthwise += c.groups > 1 && c.groups == c.in_channels ? 1 : 0;
    grouped += c.groups > 1 && c.groups != c.in_channels ? 1 : 0;
    large += c.in.size() > 256 ? 1 : 0;
    for (const reference::Site& site : c.in) {
      batches.insert(site[0]);
      negative += std::any_of(site.begin() + 1, site.end(), [](int x) { return x < 0; }) ? 1 : 0;
    }
  }
  EXPECT_EQ(modes.size(), static_cast<std::size_t>(kModes));
  EXPECT_EQ(dtypes, (std::set<DType>{DType::f32, DType::f16, DType::bf16}));
  EXPECT_EQ(dimensions, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(batches, (std::set<int>{0, 1, 2, 3}));
  for (const std::size_t size : {0u, 1u, 31u, 33u})
    EXPECT_TRUE(rows.contains(size)) << size;
  EXPECT_GT(grouped, 300);
  EXPECT_GT(depthwise, 500);
  EXPECT_GT(large, 50);
  EXPECT_GT(negative, 10'000);
}

}   // namespace
}   // namespace pumice::test
