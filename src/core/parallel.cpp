// Parallel loops over oneTBB.
#include <pumice/core/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include <tbb/blocked_range.h>
#include <tbb/global_control.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

/// More than any machine has; oneTBB starts as many as it is told, until the system gives up.
constexpr int kMostThreads = 1024;

int available() {
  return tbb::info::default_concurrency();
}

/// A thread that called a loop, or one that was started to work for them.
enum class Role : std::uint8_t { unknown, caller, worker };
thread_local Role role = Role::unknown;

/// Keeps Ctrl-C from threads that were started for loops: a program waits for it where it chose to,
/// and a handler that another library sets while it works, as NVRTC does, is not called in one of
/// them. (An observer of oneTBB's arenas would be told of its threads, and leaks 40 bytes of each
/// arena that is replaced.)
void begin_work() {
  if (role != Role::unknown) return;
  role = Role::worker;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

/// What all loops run in; replaced, never resized, so that running loops keep theirs.
struct Arena {
  explicit Arena(int threads) : arena(threads) {
    // More threads than cores: oneTBB would keep to the cores and say so on standard error.
    if (threads > available()) {
      limit.emplace(tbb::global_control::max_allowed_parallelism,
                    static_cast<std::size_t>(threads));
    }
  }
  std::optional<tbb::global_control> limit{};
  tbb::task_arena arena;
};
/// Never destroyed: a thread that nobody waits for, as a daemon of Python, may be in a loop when
/// the process ends.
std::atomic<std::shared_ptr<Arena>>& current_arena() {
  static auto& arena =
      *new std::atomic<std::shared_ptr<Arena>>{std::make_shared<Arena>(available())};
  return arena;
}

#if defined(__SANITIZE_THREAD__)
/// Distributions do not build oneTBB for ThreadSanitizer, which then sees neither its locks nor
/// what a loop orders. Under it chunks go to plain threads, so that what it reports is ours.
template <class Chunk> void run_chunks(Arena& arena, std::int64_t chunks, const Chunk& run) {
  std::atomic<std::int64_t> next{0};
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      for (std::int64_t chunk = next++; chunk < chunks; chunk = next++)
        run(chunk);
    } catch (...) {
      const std::scoped_lock lock(mutex);
      failure = std::current_exception();
      next = chunks;
    }
  };
  {
    std::vector<std::jthread> helpers;
    for (int t = 1; t < arena.arena.max_concurrency() && t < chunks; ++t)
      helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}
#else
template <class Chunk> void run_chunks(Arena& arena, std::int64_t chunks, const Chunk& run) {
  arena.arena.execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, chunks, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          for (std::int64_t chunk = range.begin(); chunk != range.end(); ++chunk)
            run(chunk);
        },
        tbb::simple_partitioner{});
  });
}
#endif

}   // namespace

void set_threads(int threads) {
  PUMICE_EXPECTS(threads >= 0 && threads <= kMostThreads, "threads = ", threads, ": ask for 1 to ",
                 kMostThreads, ", or 0 for all processors");
  current_arena().store(std::make_shared<Arena>(threads == 0 ? available() : threads));
}

int threads() {
  return current_arena().load()->arena.max_concurrency();
}

namespace detail {

void parallel_ranges(std::int64_t size, std::int64_t grain, RangeBody body, void* context) {
  if (size <= 0) return;
  if (role == Role::unknown) role = Role::caller;
  PUMICE_ENSURES(grain > 0, "grain = ", grain);
  const std::int64_t chunks = (size + grain - 1) / grain;
  const auto current = current_arena().load();
  if (chunks == 1 || current->arena.max_concurrency() == 1) {
    for (std::int64_t begin = 0; begin < size; begin += grain) {
      body(context, begin, std::min(begin + grain, size));
    }
    return;
  }
  run_chunks(*current, chunks, [&](std::int64_t chunk) {
    begin_work();
    body(context, chunk * grain, std::min((chunk + 1) * grain, size));
  });
}

}   // namespace detail
}   // namespace pumice
