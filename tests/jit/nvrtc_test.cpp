// Finding the compiler: the first place that has it, or the reason why nothing does.
#include "jit/nvrtc.hpp"

#include <algorithm>

#include <pumice/jit/support.hpp>

#include "nvrtc_support.hpp"
#include "support/message_of.hpp"

namespace pumice::jit {
namespace {

TEST(Nvrtc, AMissingLibraryIsNamedWithTheRemedy) {
  const NvrtcState state = open_nvrtc({"/nowhere/libnvrtc.so.13", "/nowhere/libnvrtc.so.12"});
  EXPECT_TRUE(state.reason.starts_with("no NVRTC: /nowhere/libnvrtc.so.13: ")) << state.reason;
  EXPECT_TRUE(state.reason.ends_with("; install CUDA's libnvrtc, or name it in PUMICE_NVRTC"))
      << state.reason;
  EXPECT_EQ(state.path, "");
}

TEST(Nvrtc, AnotherLibraryIsNone) {
  EXPECT_NE(open_nvrtc({"libc.so.6"}).reason.find("is no NVRTC of CUDA 12 or later: it has no "),
            std::string::npos);
}

TEST(Nvrtc, TheLoadersPlacesComeBeforeFolders) {
  const auto candidates = nvrtc_candidates();
  ASSERT_FALSE(candidates.empty());
  if (candidates.size() == 1) GTEST_SKIP() << "PUMICE_NVRTC names " << candidates[0];
  EXPECT_EQ(candidates[0].find('/'), std::string::npos);
  EXPECT_EQ(candidates[1].find('/'), std::string::npos);
  EXPECT_NE(std::find(candidates.begin(), candidates.end(), "/usr/local/cuda/lib64/libnvrtc.so.13"),
            candidates.end());
}

TEST(Nvrtc, WhatIsSuggestedComesFirst) {
  if (nvrtc_candidates().size() == 1) GTEST_SKIP() << "PUMICE_NVRTC names the only one";
  (void)nvrtc_state();   // found already: the suggestion is for this list alone
  suggest_kernel_compiler("/of/a/package/libnvrtc.so.13");
  EXPECT_EQ(nvrtc_candidates()[0], "/of/a/package/libnvrtc.so.13");
}

TEST(Nvrtc, TheOneOfThisProcessKnowsItsVersionAndArchitectures) {
  PUMICE_NEEDS_NVRTC();
  const NvrtcState& state = nvrtc_state();
  EXPECT_GE(state.major, 12);
  EXPECT_TRUE(state.path.starts_with("/")) << state.path;
  EXPECT_TRUE(std::is_sorted(state.architectures.begin(), state.architectures.end()));
  EXPECT_TRUE(test::compiles_for(80));
  // Once opened, the loader finds it by the same name.
  EXPECT_EQ(open_nvrtc({state.path}).major, state.major);
}

TEST(Nvrtc, WithoutOneCompilingSaysWhy) {
  if (nvrtc_state().reason.empty()) GTEST_SKIP() << "this machine has NVRTC";
  EXPECT_EQ(test::message_of([] { (void)nvrtc(); }),
            "kernels cannot be compiled here: " + nvrtc_state().reason);
}

}   // namespace
}   // namespace pumice::jit
