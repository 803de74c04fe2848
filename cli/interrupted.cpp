// A thread that reads SIGINT as a file, a child that tells it of one, and a handler for threads
// that do not block it.
#include "interrupted.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include <pumice/core/error.hpp>

namespace pumice::cli {
namespace {

std::atomic<const std::string*> text_to_say{nullptr};

sigset_t interrupts() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  return set;
}

[[noreturn]] void say_and_end(int number) {
  if (const std::string* text = text_to_say.exchange(nullptr)) {   // once, whoever hears of it
    (void)!::write(STDERR_FILENO, text->data(), text->size());
  }
  const sigset_t set = interrupts();
  for (;;) {   // another thread may ignore the signal just then: see the header
    std::signal(number, SIG_DFL);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);   // what has come and was not read ends it here
    std::raise(number);
  }
}

/// What the child does: writes to `told` at Ctrl-C. It ends with `parent`, which may have threads:
/// nothing is called here but what a signal handler may call.
[[noreturn]] void tell_of_interrupt(int told, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(0);   // ended before the line above
  const sigset_t set = interrupts();
  siginfo_t taken;
  while (sigwaitinfo(&set, &taken) != SIGINT)   // EINTR: stopped by Ctrl-Z, and continued
    ;
  const std::uint64_t one = 1;
  _exit(::write(told, &one, sizeof one) == sizeof one ? 0 : 1);
}

/// Until something is written to `end`.
void wait_for_interrupt(int signals, int told, int end) {
  for (;;) {
    pollfd any[] = {{signals, POLLIN, 0}, {told, POLLIN, 0}, {end, POLLIN, 0}};
    if (poll(any, 3, -1) < 0) continue;   // another signal
    if (any[0].revents != 0 || any[1].revents != 0) say_and_end(SIGINT);
    if (any[2].revents != 0) return;
  }
}

}   // namespace

SaysAtInterrupt::SaysAtInterrupt(const std::string& text) {
  struct sigaction now {};
  sigaction(SIGINT, nullptr, &now);
  if (now.sa_handler == SIG_IGN) return;   // as of a shell's job in the background
  const sigset_t set = interrupts();
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  told_ = eventfd(0, EFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  PUMICE_ENSURES(signals_ >= 0 && told_ >= 0 && end_ >= 0, "no file descriptor to wait for Ctrl-C");
  say(text);
  before_ = std::signal(SIGINT, &say_and_end);
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  const pid_t parent = getpid();
  child_ = fork();   // where there is no room for a process, this one alone hears of it
  if (child_ == 0) tell_of_interrupt(told_, parent);
  waiting_ = std::thread(wait_for_interrupt, signals_, told_, end_);
}

SaysAtInterrupt::~SaysAtInterrupt() {
  text_to_say = nullptr;
  if (!waiting_.joinable()) return;
  const std::uint64_t one = 1;
  (void)!::write(end_, &one, sizeof one);
  waiting_.join();
  if (child_ > 0) {
    kill(child_, SIGKILL);
    while (waitpid(child_, nullptr, 0) < 0 && errno == EINTR)
      ;
  }
  for (const int descriptor : {signals_, told_, end_})
    close(descriptor);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  std::signal(SIGINT, before_);
}

void SaysAtInterrupt::say(const std::string& text) {
  std::string& next = texts_[next_];
  next = "\npumice: " + text + "\n";
  text_to_say = &next;
  next_ = 1 - next_;
}

}   // namespace pumice::cli
