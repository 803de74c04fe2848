// A thread that reads SIGINT as a file, and a handler for threads that do not block it.
#include "interrupted.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <atomic>
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

void say_and_end(int number) {
  if (const std::string* text = text_to_say.load()) {
    (void)!::write(STDERR_FILENO, text->data(), text->size());
  }
  std::signal(number, SIG_DFL);
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  std::raise(number);
}

/// Until something is written to `end`.
void wait_for_interrupt(int signals, int end) {
  for (;;) {
    pollfd either[] = {{signals, POLLIN, 0}, {end, POLLIN, 0}};
    if (poll(either, 2, -1) < 0) continue;   // another signal
    if (either[1].revents != 0) return;
    signalfd_siginfo taken;
    if (read(signals, &taken, sizeof taken) == sizeof taken) say_and_end(SIGINT);
  }
}

}   // namespace

SaysAtInterrupt::SaysAtInterrupt(const std::string& text) {
  say(text);
  before_ = std::signal(SIGINT, &say_and_end);
  const sigset_t set = interrupts();
  pthread_sigmask(SIG_BLOCK, &set, &mask_before_);
  signals_ = signalfd(-1, &set, SFD_CLOEXEC);
  end_ = eventfd(0, EFD_CLOEXEC);
  PUMICE_ENSURES(signals_ >= 0 && end_ >= 0, "no file descriptor to wait for Ctrl-C");
  waiting_ = std::thread(wait_for_interrupt, signals_, end_);
}

SaysAtInterrupt::~SaysAtInterrupt() {
  const std::uint64_t one = 1;
  (void)!::write(end_, &one, sizeof one);
  waiting_.join();
  close(signals_);
  close(end_);
  pthread_sigmask(SIG_SETMASK, &mask_before_, nullptr);
  std::signal(SIGINT, before_);
  text_to_say = nullptr;
}

void SaysAtInterrupt::say(const std::string& text) {
  std::string& next = texts_[next_];
  next = "\npumice: " + text + "\n";
  text_to_say = &next;
  next_ = 1 - next_;
}

}   // namespace pumice::cli
