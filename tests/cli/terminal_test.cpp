// What is printed while something takes long.
#include "cli/terminal.hpp"

#include <gtest/gtest.h>

namespace pumice::cli {
namespace {

std::string said(Elsewhere elsewhere) {
  testing::internal::CaptureStderr();   // no terminal
  {
    ProgressBar bar("compiling", elsewhere);
    for (int done = 0; done <= 1200; ++done)
      bar.show(done, 1200);
  }
  return testing::internal::GetCapturedStderr();
}

TEST(Progress, WithoutATerminalIsALineAtTheBeginningAndThenOneEveryTenSeconds) {
  EXPECT_EQ(said(Elsewhere::lines), "compiling: 0 of 1,200\n");
}

TEST(Progress, OfWhatIsSoonOverIsSilentWithoutATerminal) {
  EXPECT_EQ(said(Elsewhere::nothing), "");
}

}   // namespace
}   // namespace pumice::cli
