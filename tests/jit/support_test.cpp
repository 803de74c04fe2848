// What Pumice says about its compiler and its cache.
#include <pumice/jit/support.hpp>

#include <cstdlib>
#include <iostream>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

#include "jit/cubin_cache.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

TEST(KernelCompiler, EitherIsThereOrSaysWhyNot) {
  const KernelCompiler& compiler = kernel_compiler();
  EXPECT_EQ(compiler.available, compiler.reason.empty());
  EXPECT_EQ(compiler.available, !compiler.path.empty());
  EXPECT_EQ(compiler.available, compiler.version.find('.') != std::string::npos);
}

/// Ends the process, which is one of its own: the folder and its limit are read once. 0 where
/// `check` returns nothing, else what it says on stderr.
template <class Check> [[noreturn]] void end_after(Check&& check) {
  std::string complaint;
  try {
    complaint = check();
  } catch (const std::exception& error) {
    complaint = error.what();
  }
  std::cerr << complaint << std::endl;
  std::_Exit(complaint.empty() ? 0 : 1);
}

std::string what_a_cache_says_of_itself() {
  const test::TemporaryFolder folder;
  setenv("PUMICE_CACHE", (folder / "kernels").c_str(), 1);
  setenv("PUMICE_CACHE_MB", "3", 1);
  const KernelCache empty = kernel_cache();
  if (empty.folder != folder / "kernels") return "its folder is " + empty.folder.string();
  if (empty.limit_bytes != 3 << 20) return "limit " + std::to_string(empty.limit_bytes);
  if (empty.bytes != 0 || empty.kernels != 0) return "a folder that is not there holds something";
  jit::CompileResult compiled;
  compiled.cubin.resize(100'000);
  std::int64_t written = 0;
  for (const std::uint8_t number : {std::uint8_t{1}, std::uint8_t{2}}) {
    const jit::Digest key{number};
    jit::process_cache().store(key, compiled);
    written +=
        static_cast<std::int64_t>(std::filesystem::file_size(jit::process_cache().path_of(key)));
    const KernelCache held = kernel_cache();
    if (held.kernels != number) return "it counts " + std::to_string(held.kernels) + " kernels";
    if (held.bytes != written)
      return std::to_string(held.bytes) + " bytes, of files " + std::to_string(written);
  }
  for (int number = 3; number < 60; ++number)
    jit::process_cache().store({static_cast<std::uint8_t>(number)}, compiled);
  const KernelCache full = kernel_cache();
  if (full.kernels < 20 || full.kernels > 31) return std::to_string(full.kernels) + " stay";
  return full.bytes <= full.limit_bytes ? "" : std::to_string(full.bytes) + " bytes stay";
}

TEST(KernelCache, SaysWhereItIsWhatItHoldsAndHowMuchItMay) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");   // the program from its start, not a fork of it
  EXPECT_EXIT(end_after(what_a_cache_says_of_itself), ::testing::ExitedWithCode(0), "");
}

TEST(KernelCache, RefusesALimitThatIsNoNumber) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto refusal = [] {
    setenv("PUMICE_CACHE_MB", "plenty", 1);
    return test::message_of([] { kernel_cache(); });
  };
  EXPECT_EXIT(end_after(refusal), ::testing::ExitedWithCode(1),
              "PUMICE_CACHE_MB = \"plenty\": it is a whole number of mebibytes");
}

}   // namespace
}   // namespace pumice
