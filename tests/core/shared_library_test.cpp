// Libraries that may not be there.
#include "core/shared_library.hpp"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

constexpr WantedLibrary kMath{
    .name = "library of sines", .vintage = " of this century", .remedy = "; install one"};

TEST(SharedLibrary, OneThatIsNotThereIsNamedWithARemedy) {
  const SharedLibrary library(kMath, {"/nowhere/libm.so.6", "/nowhere/else.so"});
  EXPECT_FALSE(library.is_open());
  EXPECT_EQ(library.file(), "");
  EXPECT_TRUE(library.problem().starts_with("no library of sines: /nowhere/libm.so.6: "))
      << library.problem();
  EXPECT_TRUE(library.problem().ends_with("; install one")) << library.problem();
}

TEST(SharedLibrary, TheFirstThatIsThereIsOpened) {
  SharedLibrary library(kMath, {"/nowhere/libm.so.6", "libm.so.6", "libc.so.6"});
  double (*square_root)(double) = nullptr;
  library.require("sqrt", square_root);
  EXPECT_EQ(library.problem(), "");
  EXPECT_EQ(library.candidate(), "libm.so.6");
  EXPECT_TRUE(library.file().starts_with("/")) << library.file();
  ASSERT_NE(square_root, nullptr);
  EXPECT_EQ(square_root(9), 3);
}

/// Opening a pipe would wait for its other end.
TEST(SharedLibrary, APipeIsPassedOver) {
  const test::TemporaryFolder folder;
  const std::string pipe = (folder / "libm.so.6").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(SharedLibrary(kMath, {pipe}).problem(),
            "no library of sines: " + pipe + ": is not a regular file; install one");
  EXPECT_TRUE(SharedLibrary(kMath, {pipe, "libm.so.6"}).is_open());
}

TEST(SharedLibrary, TheFirstMissingFunctionIsNamed) {
  SharedLibrary library(kMath, {"libm.so.6"});
  void (*optional)() = nullptr;
  EXPECT_FALSE(library.find("pumice_of_no_library", optional));
  EXPECT_EQ(library.problem(), "");
  double (*sine)(double) = nullptr;
  library.require("pumice_sine", sine);
  library.require("pumice_cosine", sine);
  EXPECT_EQ(library.problem(),
            "libm.so.6 is no library of sines of this century: it has no pumice_sine");
}

}   // namespace
}   // namespace pumice
