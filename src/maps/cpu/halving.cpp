// A walk along two sorted key lists: the coarse key is the fine one without its lowest bits, and
// those bits name the offset.
#include "maps/cpu/halving.hpp"

#include <array>

namespace pumice {
namespace {

constexpr std::int64_t kChunk = 4096;

/// Offsets are numbered last axis fastest, the bits of a key axis 0 lowest.
std::array<std::uint8_t, std::size_t{1} << kMaxDimension> offset_of_bits(int dimension) {
  std::array<std::uint8_t, std::size_t{1} << kMaxDimension> result{};
  for (int bits = 0; bits < 1 << dimension; ++bits) {
    int offset = 0;
    for (int axis = 0; axis < dimension; ++axis) {
      offset |= (bits >> axis & 1) << (dimension - 1 - axis);
    }
    result[static_cast<std::size_t>(bits)] = static_cast<std::uint8_t>(offset);
  }
  return result;
}

}   // namespace

bool can_pair_by_halving(const KernelWindow& window, const KeyLayout& fine,
                         const KeyLayout& coarse) {
  if (window.shape != KernelShape::hypercube || !can_halve(fine) || halved(fine) != coarse) {
    return false;
  }
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    if (window.size[at] != 2 || window.stride[at] != 2 || window.padding[at] != 0 ||
        window.dilation[at] != 1) {
      return false;
    }
  }
  return true;
}

KernelPairs pair_by_halving(const CoordinateSet& fine, const CoordinateSet& coarse) {
  const int dimension = fine.dimension();
  const auto fine_keys = fine.sorted_keys();
  const auto coarse_keys = coarse.sorted_keys();
  const auto offset_of = offset_of_bits(dimension);
  const std::uint64_t local_mask = (std::uint64_t{1} << dimension) - 1;
  const auto for_each_pair = [&](std::int64_t begin, std::int64_t end, auto&& take) {
    const std::uint64_t first = fine_keys[static_cast<std::size_t>(begin)] >> dimension;
    auto parent = std::lower_bound(coarse_keys.begin(), coarse_keys.end(), first);
    for (std::int64_t rank = begin; rank < end; ++rank) {
      const std::uint64_t key = fine_keys[static_cast<std::size_t>(rank)];
      while (parent != coarse_keys.end() && *parent < key >> dimension)
        ++parent;
      if (parent == coarse_keys.end()) return;
      if (*parent != key >> dimension) continue;
      take(offset_of[static_cast<std::size_t>(key & local_mask)], rank,
           parent - coarse_keys.begin());
    }
  };
  const auto row = [](const CoordinateSet& set, std::int64_t rank) {
    return set.in_key_order() ? static_cast<std::int32_t>(rank) : set.index().order[rank];
  };
  KernelPairs lists = make_pair_lists(
      std::size_t{1} << dimension, fine.size(), kChunk,
      [&](std::int64_t begin, std::int64_t end, std::int64_t* counts) {
        for_each_pair(begin, end, [&](std::size_t k, std::int64_t, std::int64_t) { ++counts[k]; });
      },
      [&](std::int64_t begin, std::int64_t end, const PairWriter& writer) {
        for_each_pair(begin, end, [&](std::size_t k, std::int64_t child, std::int64_t parent) {
          writer.write(k, row(fine, child), row(coarse, parent));
        });
      });
  lists.sorted_by_in = true;
  return lists;
}

}   // namespace pumice
