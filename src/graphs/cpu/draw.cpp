#include "graphs/cpu/draw.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace pumice::cpu {
namespace {

/// Up to this many, looking through the sorted ones is faster than a hash table: they are one or
/// two cache lines, and most fan-outs are below it.
constexpr std::size_t kFew = 32;

}   // namespace

// Floyd's algorithm (Bentley, Floyd 1987): the j-th draw is below limit - k + j + 1, and stands for
// that limit itself where it was drawn before.
void draw_different(Random random, std::int64_t limit, std::span<std::int64_t> drawn,
                    DrawScratch& scratch) {
  const std::size_t count = drawn.size();
  const std::int64_t first = limit - static_cast<std::int64_t>(count);
  if (count <= kFew) {
    for (std::size_t done = 0; done < count; ++done) {
      const std::int64_t top = first + static_cast<std::int64_t>(done);
      const std::int64_t number = random.integer(0, top);
      const auto end = drawn.begin() + static_cast<std::ptrdiff_t>(done);
      const auto at = std::lower_bound(drawn.begin(), end, number);
      if (at != end && *at == number) {
        *end = top;   // above all that were drawn
      } else {
        std::copy_backward(at, end, end + 1);
        *at = number;
      }
    }
    return;
  }
  const std::size_t slots = std::bit_ceil(2 * count);
  scratch.assign(slots, -1);
  /// Whether it is new.
  const auto insert = [&](std::int64_t number) {
    auto at = static_cast<std::size_t>(mix_bits(static_cast<std::uint64_t>(number)));
    for (;; ++at) {
      std::int64_t& slot = scratch[at & (slots - 1)];
      if (slot == number) return false;
      if (slot >= 0) continue;
      slot = number;
      return true;
    }
  };
  for (std::size_t done = 0; done < count; ++done) {
    const std::int64_t top = first + static_cast<std::int64_t>(done);
    const std::int64_t number = random.integer(0, top);
    drawn[done] = insert(number) ? number : top;
    if (drawn[done] == top && number != top) insert(top);
  }
  std::ranges::sort(drawn);
}

void draw_any(Random random, std::int64_t limit, std::span<std::int64_t> drawn) {
  for (std::int64_t& number : drawn)
    number = random.integer(0, limit - 1);
  std::ranges::sort(drawn);
}

}   // namespace pumice::cpu
