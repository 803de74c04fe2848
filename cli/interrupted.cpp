// A handler of SIGINT that writes a text made before.
#include "interrupted.hpp"

#include <unistd.h>

#include <atomic>
#include <csignal>

namespace pumice::cli {
namespace {

std::atomic<const std::string*> text_to_say{nullptr};

void say_and_end(int number) {
  if (const std::string* text = text_to_say.load()) {
    (void)!::write(STDERR_FILENO, text->data(), text->size());
  }
  std::signal(number, SIG_DFL);
  std::raise(number);
}

}   // namespace

SaysAtInterrupt::SaysAtInterrupt(const std::string& text) : before_(nullptr) {
  say(text);
  before_ = std::signal(SIGINT, &say_and_end);
}

SaysAtInterrupt::~SaysAtInterrupt() {
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
