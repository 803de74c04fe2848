// Kernel maps made of chance, without coordinates: any density, any order, any number of offsets.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <pumice/core/random.hpp>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::test {

inline std::vector<std::int32_t> shuffled(std::int64_t size, Random& random) {
  std::vector<std::int32_t> order(static_cast<std::size_t>(size));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1],
              order[static_cast<std::size_t>(random.integer(0, static_cast<std::int64_t>(i) - 1))]);
  }
  return order;
}

struct SyntheticMap {
  std::int64_t offsets = 0;
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::vector<std::int64_t> offset_begin;
  std::vector<std::int32_t> in;
  std::vector<std::int32_t> out;
  std::vector<std::int32_t> out_order;
  std::vector<std::int32_t> in_order;

  /// Pairs of each offset ascend in output rank; inputs are drawn without repetition.
  KernelMapView view() const {
    return {.offsets = offsets,
            .in_rows = in_rows,
            .out_rows = out_rows,
            .offset_begin = offset_begin,
            .in = in,
            .out = out,
            .out_order = out_order,
            .in_order = in_order,
            .sorted_by_out = true,
            .sorted_by_in = false,
            .has_identity_offset = false};
  }
};

/// `density`: the chance that an output has an offset; the offset's index makes it rarer.
inline SyntheticMap synthetic_map(std::int64_t offsets, std::int64_t in_rows, std::int64_t out_rows,
                                  double density, bool ordered_rows, std::uint64_t seed) {
  Random random(seed);
  SyntheticMap map{offsets, in_rows, out_rows, {0}, {}, {}, {}, {}};
  if (!ordered_rows) {
    map.out_order = shuffled(out_rows, random);
    map.in_order = shuffled(in_rows, random);
  }
  const std::vector<std::int32_t> inputs = shuffled(in_rows, random);
  for (std::int64_t k = 0; k < offsets; ++k) {
    const double chance = density / static_cast<double>(1 + k % 7);
    std::int64_t at = in_rows == 0 ? 0 : random.integer(0, in_rows - 1);
    std::int64_t taken = 0;
    for (std::int64_t rank = 0; rank < out_rows && taken < in_rows; ++rank) {
      if (random.uniform() >= chance) continue;
      map.in.push_back(inputs[static_cast<std::size_t>(at)]);
      map.out.push_back(ordered_rows ? static_cast<std::int32_t>(rank)
                                     : map.out_order[static_cast<std::size_t>(rank)]);
      at = (at + 1) % in_rows;
      ++taken;
    }
    map.offset_begin.push_back(static_cast<std::int64_t>(map.in.size()));
  }
  return map;
}

/// A pair as a value, for comparing sets of them.
struct Meeting {
  std::int64_t offset;
  std::int32_t in;
  std::int32_t out;
  friend auto operator<=>(const Meeting&, const Meeting&) = default;
};

inline std::vector<Meeting> sorted_meetings(const KernelMapView& map) {
  std::vector<Meeting> all;
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (std::int64_t pair = map.offset_begin[static_cast<std::size_t>(k)];
         pair < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++pair) {
      all.push_back(
          {k, map.in[static_cast<std::size_t>(pair)], map.out[static_cast<std::size_t>(pair)]});
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

/// Every pair of the tiles, without the rows of zeros.
inline std::vector<Meeting> sorted_meetings(const RelationTilesView& tiles) {
  std::vector<Meeting> all;
  for (std::int64_t tile = 0; tile < tiles.tiles; ++tile) {
    for (std::int64_t k = 0; k < tiles.offsets; ++k) {
      const std::int64_t* const range = tiles.begin + tile * tiles.offsets + k;
      for (std::int64_t pair = range[0]; pair < range[1]; ++pair) {
        if (tiles.in[pair] < 0) continue;
        const std::int64_t rank = tile * tiles.tile_rows + tiles.local_out[pair];
        all.push_back(
            {k, tiles.in[pair],
             tiles.out_order == nullptr ? static_cast<std::int32_t>(rank) : tiles.out_order[rank]});
      }
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}   // namespace pumice::test
