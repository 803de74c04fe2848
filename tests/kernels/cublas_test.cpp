// Opening cuBLAS: where it is looked for, and what is said where there is none.
// Covers cublas of src/kernels/cuda.
#include "kernels/cuda/cublas.hpp"

#include <algorithm>

#include <gtest/gtest.h>

#include <pumice/kernels/support.hpp>

namespace pumice::cuda {
namespace {

TEST(CublasLibrary, says_what_to_install_where_there_is_none) {
  const CublasState state = open_cublas({"/nowhere/libcublas.so.13", "/nowhere/libcublas.so.12"});
  EXPECT_TRUE(state.path.empty());
  for (const char* part :
       {"no cuBLAS", "/nowhere/libcublas.so.13", "nvidia-cublas", "PUMICE_CUBLAS"})
    EXPECT_NE(state.reason.find(part), std::string::npos) << state.reason;
}

TEST(CublasLibrary, refuses_a_library_that_is_another) {
  const CublasState state = open_cublas({"libm.so.6"});
  EXPECT_NE(state.reason.find("libm"), std::string::npos) << state.reason;
  EXPECT_NE(state.reason.find("cublasGetProperty"), std::string::npos) << state.reason;
}

TEST(CublasLibrary, is_looked_for_by_the_loader_first) {
  const std::vector<std::string> candidates = cublas_candidates();
  ASSERT_FALSE(candidates.empty());
  if (candidates.size() == 1) GTEST_SKIP() << "PUMICE_CUBLAS names the only one";
  for (std::size_t i = 0; i < 2; ++i)
    EXPECT_EQ(candidates[i].find('/'), std::string::npos) << candidates[i];
  EXPECT_NE(
      std::find(candidates.begin(), candidates.end(), "/usr/local/cuda/lib64/libcublas.so.12"),
      candidates.end());
}

TEST(CublasLibrary, is_of_cuda_12_or_later_where_it_is_found) {
  const CublasState& state = cublas_state();
  EXPECT_EQ(dense_product_library().available, state.reason.empty());
  EXPECT_EQ(dense_product_library().reason, state.reason);
  if (!state.reason.empty()) GTEST_SKIP() << state.reason;
  EXPECT_GE(state.major, 12);
  EXPECT_NE(state.path.find("cublas"), std::string::npos) << state.path;
}

}   // namespace
}   // namespace pumice::cuda
