// Threads. The cut of a range never depends on the number of threads, so a loop that keeps its
// partial results per chunk and combines them in chunk order gives the same bits for 1 and N.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace pumice {

/// How many threads parallel loops use from now on; 0 means all processors this process may use.
void set_threads(int threads);
int threads();

namespace detail {
using RangeBody = void (*)(void* context, std::int64_t begin, std::int64_t end);
void parallel_ranges(std::int64_t size, std::int64_t grain, RangeBody body, void* context);
}   // namespace detail

/// Calls body(begin, end) for consecutive chunks of [0, size), `grain` long but for the last, in
/// any order and on any thread; returns when all are done. An exception of a chunk is rethrown.
template <class Body> void parallel_for(std::int64_t size, std::int64_t grain, Body&& body) {
  using Callable = std::remove_reference_t<Body>;
  detail::parallel_ranges(
      size, grain,
      [](void* context, std::int64_t begin, std::int64_t end) {
        (*static_cast<Callable*>(context))(begin, end);
      },
      const_cast<void*>(static_cast<const void*>(std::addressof(body))));
}

}   // namespace pumice
