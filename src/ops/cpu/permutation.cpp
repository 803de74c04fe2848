// Element by element, in the order of the copy.
#include "ops/cpu/permutation.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include <pumice/core/parallel.hpp>

namespace pumice::cpu {
namespace {

constexpr std::int64_t kGrain = 1 << 14;   // elements a chunk

/// The axes of a copy: extents, and how many elements of the source a step takes.
struct Axes {
  std::int64_t extent[Shape::kMaxRank];
  std::int64_t step[Shape::kMaxRank];
  int rank = 0;

  explicit Axes(const Permutation& copy) : rank(copy.from.rank()) {
    const Shape& shape = copy.from.shape();
    std::int64_t steps[Shape::kMaxRank];
    std::int64_t step_of_axis = 1;
    for (int axis = rank - 1; axis >= 0; --axis) {
      steps[axis] = step_of_axis;
      step_of_axis *= shape[axis];
    }
    for (int axis = 0; axis < rank; ++axis) {
      const int from = copy.order[static_cast<std::size_t>(axis)];
      extent[axis] = shape[from];
      step[axis] = steps[from];
    }
  }

  std::int64_t source_of(std::int64_t element) const {
    std::int64_t source = 0;
    for (int axis = rank - 1; axis >= 0; --axis) {
      source += element % extent[axis] * step[axis];
      element /= extent[axis];
    }
    return source;
  }
};

template <class Bits> void copy_elements(const Permutation& copy) {
  const Axes axes(copy);
  const auto* const from = static_cast<const Bits*>(copy.from.raw());
  auto* const to = static_cast<Bits*>(copy.to.raw());
  const std::int64_t last = axes.rank == 0 ? 1 : axes.extent[axes.rank - 1];
  const std::int64_t step = axes.rank == 0 ? 1 : axes.step[axes.rank - 1];
  parallel_for(copy.to.elements(), kGrain, [&](std::int64_t begin, std::int64_t end) {
    while (begin < end) {
      const std::int64_t run = std::min(end - begin, last - begin % last);
      const Bits* source = from + axes.source_of(begin);
      for (std::int64_t i = 0; i < run; ++i, source += step)
        to[begin + i] = *source;
      begin += run;
    }
  });
}

}   // namespace

void permute(std::span<const Permutation> copies) {
  for (const Permutation& copy : copies) {
    switch (size_of(copy.from.dtype())) {
      case 8: copy_elements<std::uint64_t>(copy); break;
      case 4: copy_elements<std::uint32_t>(copy); break;
      case 2: copy_elements<std::uint16_t>(copy); break;
      default: copy_elements<std::uint8_t>(copy); break;
    }
  }
}

}   // namespace pumice::cpu
