// Ctrl-C ends a command with its sentence, whatever another thread does about signals meanwhile.
#include "cli/interrupted.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <iterator>
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

/// From now on fork fails, as where there is no room for a process; threads can be started.
bool refuse_forks() {
  constexpr auto kFlags = offsetof(seccomp_data, args[0]);
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_clone, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kFlags),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, CLONE_THREAD, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EAGAIN),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog filter{std::size(steps), steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST_F(InterruptedTest, SaysItWhereThereIsNoRoomForAnotherProcess) {
  constexpr int kNoFilter = 9;
  const auto [shown, status] = shown_on_a_terminal(
      [] {
        if (!refuse_forks()) _exit(kNoFilter);
        if (fork() >= 0 || errno != EAGAIN) _exit(8);
        const SaysAtInterrupt stopped("stopped, and nothing is kept");
        wait_for_ctrl_c("working");
      },
      "working");
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoFilter)
    GTEST_SKIP() << "this system lets no program filter its own calls";
  EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGINT) << shown << status;
  EXPECT_NE(shown.find("pumice: stopped, and nothing is kept\r\n"), std::string::npos) << shown;
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
