// Fibers, with what the address and thread sanitizers want to know about them. On x86-64 a switch
// is the dozen instructions it takes, 12 times faster than swapcontext, which asks the kernel for
// the signal mask; under the address sanitizer, which has swapcontext clear the shadow of a whole
// stack, 30 times.
#include "support/fiber.hpp"

#include <cstddef>
#include <cstdint>

#include <sys/mman.h>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include <pumice/core/error.hpp>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif
#if defined(__SANITIZE_THREAD__)
#include <sanitizer/tsan_interface.h>
#endif

#if defined(__x86_64__)
// Saves what a callee must preserve and the stack pointer in *from, and goes on from `to`.
extern "C" void pumice_switch_stack(void** from, void* to);
asm(R"(
.text
.type pumice_switch_stack, @function
pumice_switch_stack:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, (%rdi)
  mov %rsi, %rsp
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.size pumice_switch_stack, .-pumice_switch_stack
)");
#endif

namespace pumice::test {
namespace {

// Redzones make frames several times larger.
#if defined(__SANITIZE_ADDRESS__)
constexpr std::size_t kStackBytes = 256 << 10;
#else
constexpr std::size_t kStackBytes = 64 << 10;
#endif
constexpr std::size_t kGuardBytes = 4 << 10;

thread_local FiberGroup* entering = nullptr;   // whose fiber begins

#if defined(__x86_64__)
class Context {
 public:
  void begin(void* stack, std::size_t bytes, void (*entry)()) {
    auto* top = reinterpret_cast<std::uintptr_t*>(static_cast<char*>(stack) + bytes);
    *--top = 0;   // so that the entry finds the alignment that a call leaves, and no caller
    *--top = reinterpret_cast<std::uintptr_t>(entry);
    top -= 6;   // the registers that a switch restores
    for (int i = 0; i < 6; ++i)
      top[i] = 0;
    stack_pointer_ = top;
  }
  void switch_to(const Context& to) { pumice_switch_stack(&stack_pointer_, to.stack_pointer_); }

 private:
  void* stack_pointer_ = nullptr;
};
#else
class Context {
 public:
  void begin(void* stack, std::size_t bytes, void (*entry)()) {
    PUMICE_ENSURES(getcontext(&context_) == 0, "getcontext");
    context_.uc_stack.ss_sp = stack;
    context_.uc_stack.ss_size = bytes;
    context_.uc_link = nullptr;
    makecontext(&context_, entry, 0);
  }
  void switch_to(const Context& to) { swapcontext(&context_, &to.context_); }

 private:
  ucontext_t context_{};
};
#endif

}   // namespace

struct FiberGroup::Fiber {
  Context context;
  char* memory = nullptr;   // a guard page, then the stack; null for the owner
  const void* stack = nullptr;
  std::size_t stack_bytes = 0;
  void* fake_stack = nullptr;
  void* tsan = nullptr;
  bool begun = false;

  Fiber() = default;
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;
  ~Fiber() {
    if (memory == nullptr) return;
#if defined(__SANITIZE_THREAD__)
    __tsan_destroy_fiber(tsan);
#endif
    munmap(memory, kGuardBytes + kStackBytes);
  }
  void make_stack() {
    void* const mapped = mmap(nullptr, kGuardBytes + kStackBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    PUMICE_ENSURES(mapped != MAP_FAILED, "no memory for the stack of a fiber");
    memory = static_cast<char*>(mapped);
    PUMICE_ENSURES(mprotect(memory, kGuardBytes, PROT_NONE) == 0, "no guard page for a fiber");
    stack = memory + kGuardBytes;
    stack_bytes = kStackBytes;
#if defined(__SANITIZE_THREAD__)
    tsan = __tsan_create_fiber(0);
#endif
  }
  void begin(void (*entry)()) {
#if defined(__SANITIZE_ADDRESS__)
    ASAN_UNPOISON_MEMORY_REGION(stack, stack_bytes);   // of frames that were given up
#endif
    context.begin(memory + kGuardBytes, stack_bytes, entry);
    begun = true;
  }
};

FiberGroup::FiberGroup(void* context, Call body, Call idle)
    : context_(context), body_(body), idle_(idle), owner_(std::make_unique<Fiber>()) {
#if defined(__SANITIZE_THREAD__)
  owner_->tsan = __tsan_get_current_fiber();
#endif
}

FiberGroup::~FiberGroup() = default;

void FiberGroup::reserve(int count) {
  while (static_cast<int>(fibers_.size()) < count) {
    fibers_.push_back(std::make_unique<Fiber>());
    fibers_.back()->make_stack();
  }
}

void FiberGroup::restart() {
  for (const auto& fiber : fibers_)
    fiber->begun = false;
}

FiberGroup::Fiber& FiberGroup::fiber(int number) {
  return number == kOwner ? *owner_ : *fibers_[static_cast<std::size_t>(number)];
}

void FiberGroup::switch_to(int to) {
  if (to == current_) return;
  Fiber& from_fiber = fiber(current_);
  Fiber& to_fiber = fiber(to);
  if (to != kOwner && !to_fiber.begun) {
    to_fiber.begin(&FiberGroup::enter);
    entering = this;
  }
  current_ = to;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&from_fiber.fake_stack, to_fiber.stack, to_fiber.stack_bytes);
#endif
#if defined(__SANITIZE_THREAD__)
  __tsan_switch_to_fiber(to_fiber.tsan, 0);
#endif
  from_fiber.context.switch_to(to_fiber.context);
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(from_fiber.fake_stack, nullptr, nullptr);
#endif
}

void FiberGroup::enter() {
  entering->run();
}

void FiberGroup::run() {
#if defined(__SANITIZE_ADDRESS__)
  const void* stack = nullptr;
  std::size_t bytes = 0;
  __sanitizer_finish_switch_fiber(nullptr, &stack, &bytes);
  if (owner_->stack == nullptr) {   // the first switch of all comes from the owner
    owner_->stack = stack;
    owner_->stack_bytes = bytes;
  }
#endif
  for (;;) {
    body_(context_, current_);
    idle_(context_, current_);
  }
}

}   // namespace pumice::test
