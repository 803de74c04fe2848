// What a command says when Ctrl-C ends it.
#pragma once

#include <sys/types.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>

namespace pumice::cli {

/// As long as it lives, Ctrl-C prints a text on standard error before it ends the program as it
/// does without. One at a time, of the thread that made it. Where the signal is ignored when this
/// is made, it stays so.
///
/// NVRTC sets a handler of its own while it compiles, which ends the program without a word. So a
/// thread waits for the signal here, which the others, all that are started from now on, block:
/// then no handler is called, whoever set it.
///
/// And each time NVRTC begins, it calls signal(SIGINT, SIG_IGN) for a moment, which discards a
/// signal that has come and that nobody has read yet: Ctrl-C was lost now and then on a busy
/// machine. A terminal sends it to all processes of the foreground group; so a child, in which
/// nobody compiles, waits for it as well. A `kill -INT` of this process alone does not reach it.
class SaysAtInterrupt {
 public:
  /// "stopped; no bundle was written": without the name of the program.
  explicit SaysAtInterrupt(const std::string& text);
  ~SaysAtInterrupt();
  SaysAtInterrupt(const SaysAtInterrupt&) = delete;
  SaysAtInterrupt& operator=(const SaysAtInterrupt&) = delete;

  /// From now on another text.
  void say(const std::string& text);

 private:
  std::array<std::string, 2> texts_;   // the handler may be reading the other one
  std::size_t next_ = 0;
  void (*before_)(int) = nullptr;   // of threads that were there already
  sigset_t mask_before_{};
  int signals_ = -1;   // file descriptors
  int told_ = -1;      // the child writes to it
  int end_ = -1;
  pid_t child_ = -1;
  std::thread waiting_;
};

}   // namespace pumice::cli
