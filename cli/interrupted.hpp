// What a command says when Ctrl-C ends it.
#pragma once

#include <array>
#include <csignal>
#include <cstddef>
#include <string>
#include <thread>

namespace pumice::cli {

/// As long as it lives, Ctrl-C prints a text on standard error before it ends the program as it
/// does without. One at a time, of the thread that made it.
///
/// NVRTC sets a handler of its own while it compiles, which ends the program without a word. So a
/// thread waits for the signal here, which the others, all that are started from now on, block:
/// then no handler is called, whoever set it.
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
  int end_ = -1;
  std::thread waiting_;
};

}   // namespace pumice::cli
