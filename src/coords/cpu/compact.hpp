// Keeps some elements of a range, in order: count per chunk, then fill where the counts say.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include <pumice/core/parallel.hpp>

namespace pumice {

inline constexpr std::int64_t kCompactChunk = std::int64_t{1} << 14;

/// Positions of the kept elements of [0, size): `keep(i)` says which, twice with the same answer.
template <class Keep> class Compaction {
 public:
  Compaction(std::int64_t size, Keep keep) : size_(size), keep_(std::move(keep)) {
    first_.assign(static_cast<std::size_t>((size + kCompactChunk - 1) / kCompactChunk) + 1, 0);
    parallel_for(size, kCompactChunk, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t count = 0;
      for (std::int64_t i = begin; i < end; ++i)
        count += keep_(i) ? 1 : 0;
      first_[static_cast<std::size_t>(begin / kCompactChunk) + 1] = count;
    });
    for (std::size_t chunk = 1; chunk < first_.size(); ++chunk)
      first_[chunk] += first_[chunk - 1];
  }

  std::int64_t kept() const { return first_.back(); }

  /// Calls emit(i, position) for every kept i, and skip(i, next position) for the others.
  template <class Emit, class Skip> void for_each(Emit&& emit, Skip&& skip) const {
    parallel_for(size_, kCompactChunk, [&](std::int64_t begin, std::int64_t end) {
      std::int64_t position = first_[static_cast<std::size_t>(begin / kCompactChunk)];
      for (std::int64_t i = begin; i < end; ++i) {
        if (keep_(i)) {
          emit(i, position++);
        } else {
          skip(i, position);
        }
      }
    });
  }
  template <class Emit> void for_each(Emit&& emit) const {
    for_each(emit, [](std::int64_t, std::int64_t) {});
  }

 private:
  std::int64_t size_;
  Keep keep_;
  std::vector<std::int64_t> first_;
};

}   // namespace pumice
