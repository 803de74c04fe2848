// Twelve thousand generated convolutions and a few large ones, each against the reference: output
// and every gradient. A failure prints the case; `PUMICE_CASE=<seed>` runs that one alone.
// Covers convolution.
#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "ops/convolution_check.hpp"
#include "support/random_problems.hpp"

namespace pumice::test {
namespace {

constexpr std::uint64_t kSeed = 20'000;
constexpr int kCases = 12'000;
constexpr int kParts = 12;
// Under the sanitizers a quarter, and four of the large cases, which take seconds: two of the
// others take a minute each.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr int kCasesOfPart = kCases / kParts / 4;
constexpr int kFirstLarge = 4, kLargeEnd = 8;
#else
constexpr int kCasesOfPart = kCases / kParts;
constexpr int kFirstLarge = 0, kLargeEnd = 14;
#endif

/// Stops at the third failure: the first ones say what is wrong.
void run_cases(std::uint64_t first, int count) {
  int failures = 0;
  for (int i = 0; i < count && failures < 3; ++i) {
    const ConvolutionCase c = draw_case(first + static_cast<std::uint64_t>(i));
    std::string complaint;
    try {
      complaint = check_case(c);
    } catch (const Error& error) {
      complaint = error.what();
    }
    if (complaint.empty()) continue;
    ++failures;
    ADD_FAILURE() << c << "\n  " << complaint;
  }
}

class ConvolutionFuzz : public testing::TestWithParam<int> {};

TEST_P(ConvolutionFuzz, AgreesWithTheReference) {
  run_cases(kSeed + static_cast<std::uint64_t>(GetParam()) * kCasesOfPart, kCasesOfPart);
}
INSTANTIATE_TEST_SUITE_P(Part, ConvolutionFuzz, testing::Range(0, kParts));

class LargeConvolutionFuzz : public testing::TestWithParam<int> {};

TEST_P(LargeConvolutionFuzz, AgreesWithTheReference) {
  run_cases(kLargeSeeds + static_cast<std::uint64_t>(GetParam()), 1);
}
INSTANTIATE_TEST_SUITE_P(Part, LargeConvolutionFuzz, testing::Range(kFirstLarge, kLargeEnd));

TEST(ConvolutionFuzz, OneCaseByItsSeed) {
  const auto seed = number_from("PUMICE_CASE");
  if (!seed) GTEST_SKIP() << "set PUMICE_CASE to a seed to run that case alone";
  run_cases(*seed, 1);
}

TEST(ConvolutionFuzz, DrawsEveryKindOfCase) {
  std::set<Mode> modes;
  std::set<Dataflow> dataflows;
  std::set<DType> dtypes;
  std::set<int> dimensions;
  std::set<std::size_t> rows;
  std::set<int> strides, dilations, sizes, batches;
  int grouped = 0, depthwise = 0, negative = 0, shaped = 0, padded = 0;
  for (int i = 0; i < kCases; ++i) {
    const ConvolutionCase c = draw_case(kSeed + static_cast<std::uint64_t>(i));
    modes.insert(c.mode);
    dataflows.insert(c.dataflow);
    dtypes.insert(c.dtype);
    dimensions.insert(c.dimension);
    rows.insert(c.in.size());
    strides.insert(c.geometry.stride.begin(), c.geometry.stride.end());
    dilations.insert(c.geometry.dilation.begin(), c.geometry.dilation.end());
    sizes.insert(c.geometry.size.begin(), c.geometry.size.end());
    grouped += c.groups == 2 ? 1 : 0;
    depthwise += c.groups > 2 && c.groups == c.in_channels ? 1 : 0;
    shaped += c.shape ? 1 : 0;
    padded += std::any_of(c.geometry.padding.begin(), c.geometry.padding.end(),
                          [](int p) { return p > 0; })
                  ? 1
                  : 0;
    for (const reference::Site& site : c.in) {
      batches.insert(site[0]);
      negative += std::any_of(site.begin() + 1, site.end(), [](int x) { return x < 0; }) ? 1 : 0;
    }
  }
  EXPECT_EQ(modes.size(), static_cast<std::size_t>(kModes));
  EXPECT_EQ(dataflows.size(), 3u);
  EXPECT_EQ(dtypes.size(), 4u);
  EXPECT_EQ(dimensions, (std::set<int>{1, 2, 3, 4}));
  EXPECT_EQ(strides, (std::set<int>{1, 2, 3}));
  EXPECT_EQ(dilations, (std::set<int>{1, 2, 3}));
  EXPECT_EQ(sizes, (std::set<int>{1, 2, 3, 4, 5}));
  EXPECT_EQ(batches, (std::set<int>{0, 1, 2, 3}));
  for (const std::size_t size : {0u, 1u, 31u, 33u})
    EXPECT_TRUE(rows.contains(size)) << size;
  for (const int count : {grouped, depthwise, shaped, padded})
    EXPECT_GT(count, 500);
  EXPECT_GT(negative, 10'000);
}

TEST(ConvolutionFuzz, DuplicateSitesAreRefused) {
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    ConvolutionCase c = draw_case(kSeed + seed);
    if (c.in.empty()) continue;
    Random random(seed, 2);
    const auto last = static_cast<std::int64_t>(c.in.size()) - 1;
    const reference::Site again = c.in[static_cast<std::size_t>(random.integer(0, last))];
    c.in.insert(c.in.begin() + random.integer(0, last + 1), again);
    EXPECT_THROW(check_case(c), UserError) << c;
    ++refused;
  }
  EXPECT_GT(refused, 150);
}

}   // namespace
}   // namespace pumice::test
