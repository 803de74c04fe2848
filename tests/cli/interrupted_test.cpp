// Ctrl-C ends a command with its sentence, whatever another thread does about signals meanwhile.
#include "cli/interrupted.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <exception>
#include <thread>

#include <gtest/gtest.h>

#include "program.hpp"

namespace pumice::cli {
namespace {

class InterruptedTest : public test::ProgramTest {};

void wait_for_ctrl_c(const char* marker) {
  (void)!::write(STDOUT_FILENO, marker, std::strlen(marker));
  sleep(20);
}

TEST_F(InterruptedTest, SaysItsSentence) {
  const auto [shown, status] = shown_on_a_terminal(
      [] {
        SaysAtInterrupt stopped("stopped, and nothing is kept");
        stopped.say("stopped, and half is kept");
        wait_for_ctrl_c("working");
      },
      "working");
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << shown;
  EXPECT_NE(shown.find("pumice: stopped, and half is kept\r\n"), std::string::npos) << shown;
}

TEST_F(InterruptedTest, SaysItWhereAnotherThreadDiscardsSignalsAsACompilerThatBeginsDoes) {
  for (int time = 0; time < 10; ++time) {
    const auto [shown, status] = shown_on_a_terminal(
        [] {
          const SaysAtInterrupt stopped("stopped, and nothing is kept");
          std::thread([] {
            for (;;)
              std::signal(SIGINT, SIG_IGN);
          }).detach();
          wait_for_ctrl_c("compiling");
        },
        "compiling");
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << shown;
    ASSERT_NE(shown.find("pumice: stopped, and nothing is kept"), std::string::npos) << shown;
  }
}

TEST_F(InterruptedTest, HearsNothingWhereTheSignalWasIgnoredBefore) {
  const auto [shown, status] = shown_on_a_terminal(
      [] {
        std::signal(SIGINT, SIG_IGN);
        const SaysAtInterrupt stopped("stopped");
        (void)!::write(STDOUT_FILENO, "working", 7);
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        _exit(std::signal(SIGINT, SIG_DFL) == SIG_IGN ? 7 : 8);
      },
      "working");
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7) << shown;
  EXPECT_EQ(shown.find("stopped"), std::string::npos) << shown;
}

TEST_F(InterruptedTest, NeedsNoRoomForAnotherProcess) {
  const auto [shown, status] = shown_on_a_terminal(
      [] {
        // Root may start processes beyond the limit.
        if (getuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(9);
        const rlimit none{1, 1};
        if (setrlimit(RLIMIT_NPROC, &none) != 0) _exit(9);
        try {
          const SaysAtInterrupt stopped("stopped, and nothing is kept");
          wait_for_ctrl_c("working");
        } catch (const std::exception& error) {   // a thread counts as a process there
          (void)!::write(STDOUT_FILENO, "no thread", 9);
        }
        _exit(7);
      },
      "working");
  const bool ended = WIFSIGNALED(status) && WTERMSIG(status) == SIGINT;
  EXPECT_TRUE(ended || (WIFEXITED(status) && WEXITSTATUS(status) == 7)) << shown << status;
}

TEST_F(InterruptedTest, LeavesNoProcessAndNoHandlerBehind) {
  const auto before = std::signal(SIGINT, SIG_DFL);
  { const SaysAtInterrupt stopped("stopped"); }
  EXPECT_EQ(std::signal(SIGINT, before), SIG_DFL);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child is left";
  EXPECT_EQ(errno, ECHILD);
}

}   // namespace
}   // namespace pumice::cli
