// Stacks that take turns on one thread, announced to the sanitizers.
#pragma once

#include <memory>
#include <vector>

namespace pumice::test {

/// `count` fibers that each call `body(number)` over and over: when a call returns, `idle(number)`
/// must switch away. The thread that owns the group is fiber -1.
class FiberGroup {
 public:
  using Call = void (*)(void* context, int number);
  FiberGroup(void* context, Call body, Call idle);
  ~FiberGroup();
  FiberGroup(const FiberGroup&) = delete;
  FiberGroup& operator=(const FiberGroup&) = delete;

  static constexpr int kOwner = -1;
  /// Makes room for fibers [0, count).
  void reserve(int count);
  /// Goes on where fiber `to` stopped. Returns when somebody switches back to the caller.
  void switch_to(int to);
  /// Gives up on where fibers stopped: the next switch to one begins its body anew. Nothing that
  /// they hold is destroyed.
  void restart();
  int current() const { return current_; }

 private:
  struct Fiber;
  static void enter();
  [[noreturn]] void run();
  Fiber& fiber(int number);

  void* context_;
  Call body_;
  Call idle_;
  std::unique_ptr<Fiber> owner_;
  std::vector<std::unique_ptr<Fiber>> fibers_;
  int current_ = kOwner;
};

}   // namespace pumice::test
