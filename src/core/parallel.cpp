// Parallel loops over oneTBB.
#include <pumice/core/parallel.hpp>

#include <algorithm>
#include <atomic>
#include <memory>

#include <tbb/blocked_range.h>
#include <tbb/info.h>
#include <tbb/parallel_for.h>
#include <tbb/task_arena.h>

#include <pumice/core/error.hpp>

namespace pumice {
namespace {

int available() {
  return tbb::info::default_concurrency();
}

/// The arena that all loops run in; replaced, never resized, so that running loops keep theirs.
std::shared_ptr<tbb::task_arena> make_arena(int threads) {
  return std::make_shared<tbb::task_arena>(threads);
}
std::atomic<std::shared_ptr<tbb::task_arena>>& current_arena() {
  static std::atomic<std::shared_ptr<tbb::task_arena>> arena{make_arena(available())};
  return arena;
}

}   // namespace

void set_threads(int threads) {
  PUMICE_EXPECTS(threads >= 0, "threads = ", threads, ": ask for at least 1, or 0 for all");
  current_arena().store(make_arena(threads == 0 ? available() : threads));
}

int threads() {
  return current_arena().load()->max_concurrency();
}

namespace detail {

void parallel_ranges(std::int64_t size, std::int64_t grain, RangeBody body, void* context) {
  if (size <= 0) return;
  PUMICE_ENSURES(grain > 0, "grain = ", grain);
  const std::int64_t chunks = (size + grain - 1) / grain;
  const auto arena = current_arena().load();
  if (chunks == 1 || arena->max_concurrency() == 1) {
    for (std::int64_t begin = 0; begin < size; begin += grain) {
      body(context, begin, std::min(begin + grain, size));
    }
    return;
  }
  arena->execute([&] {
    tbb::parallel_for(
        tbb::blocked_range<std::int64_t>(0, chunks, 1),
        [&](const tbb::blocked_range<std::int64_t>& range) {
          for (std::int64_t chunk = range.begin(); chunk != range.end(); ++chunk) {
            body(context, chunk * grain, std::min((chunk + 1) * grain, size));
          }
        },
        tbb::simple_partitioner{});
  });
}

}   // namespace detail
}   // namespace pumice
