// What Pumice says about its compiler and its cache.
#include <gtest/gtest.h>

#include <pumice/jit/support.hpp>

namespace pumice {
namespace {

TEST(KernelCompiler, EitherIsThereOrSaysWhyNot) {
  const KernelCompiler& compiler = kernel_compiler();
  EXPECT_EQ(compiler.available, compiler.reason.empty());
  EXPECT_EQ(compiler.available, !compiler.path.empty());
  EXPECT_EQ(compiler.available, compiler.version.find('.') != std::string::npos);
}

TEST(KernelCache, IsBounded) {
  const KernelCache cache = kernel_cache();
  EXPECT_GE(cache.limit_bytes, 0);
  EXPECT_GE(cache.bytes, 0);
  if (cache.folder.empty()) {
    EXPECT_EQ(cache.kernels, 0);
  }
}

}   // namespace
}   // namespace pumice
