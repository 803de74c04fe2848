// Tile maps built on the host, slowly and obviously, so that kernels can be tested and measured
// without the code that builds them on a device.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include <pumice/shared/tile_map.h>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::test {

struct HostTileMap {
  std::vector<TileRun> order;
  std::vector<TileEntry> entry;
  std::vector<std::int32_t> in_row;
  std::vector<std::int32_t> out_row;
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::int32_t tile_rows = 0;
  std::int32_t offsets = 0;
  int splits = 1;

  std::int64_t tiles() const { return static_cast<std::int64_t>(order.size()); }
  /// Everything exact, all pointers into this map.
  TileMapRef ref() const {
    return {.tile_order = order.data(),
            .entry = entry.data(),
            .in_row = in_row.data(),
            .out_row = out_row.data(),
            .tiles = {nullptr, tiles()},
            .in_rows = {nullptr, in_rows},
            .out_rows = {nullptr, out_rows},
            .tile_rows = tile_rows,
            .offsets = offsets};
  }
  /// Rows that are multiplied, blocks that have an offset counted whole.
  std::int64_t multiplied_rows() const {
    std::int64_t rows = 0;
    for (const TileEntry& one : entry)
      rows += std::int64_t{kBlockRows} * __builtin_popcount(one.blocks);
    return rows;
  }
};

namespace detail {

/// neighbour[row · offsets + k]: the input row, −1 for none.
inline std::vector<std::int32_t> neighbour_table(const KernelMapView& map) {
  std::vector<std::int32_t> table(static_cast<std::size_t>(map.out_rows * map.offsets), -1);
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (std::int64_t p = map.offset_begin[static_cast<std::size_t>(k)];
         p < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++p) {
      const std::int64_t row = map.out[static_cast<std::size_t>(p)];
      table[static_cast<std::size_t>(row * map.offsets + k)] = map.in[static_cast<std::size_t>(p)];
    }
  }
  return table;
}

/// All offsets, those that most rows have first.
inline std::vector<std::int32_t> by_frequency(const KernelMapView& map) {
  std::vector<std::int32_t> offsets(static_cast<std::size_t>(map.offsets));
  std::iota(offsets.begin(), offsets.end(), 0);
  std::stable_sort(offsets.begin(), offsets.end(), [&](std::int32_t a, std::int32_t b) {
    return map.pairs_of(a) > map.pairs_of(b);
  });
  return offsets;
}

/// Rows in the order of the Gray code of their masks, the rarest offset in the highest bit:
/// neighbouring rows then differ in few offsets.
inline std::vector<std::int32_t> rows_by_mask(const KernelMapView& map,
                                              const std::vector<std::int32_t>& table,
                                              const std::vector<std::int32_t>& offsets) {
  const std::size_t words = (offsets.size() + 63) / 64;
  std::vector<std::uint64_t> key(static_cast<std::size_t>(map.out_rows) * words);
  for (std::int64_t row = 0; row < map.out_rows; ++row) {
    bool parity = false;   // of the mask's bits above: what decodes a Gray code
    for (std::size_t bit = offsets.size(); bit-- > 0;) {
      parity ^= table[static_cast<std::size_t>(row * map.offsets + offsets[bit])] >= 0;
      if (parity) {
        key[static_cast<std::size_t>(row) * words + words - 1 - bit / 64] |= std::uint64_t{1}
                                                                             << bit % 64;
      }
    }
  }
  std::vector<std::int32_t> rows(static_cast<std::size_t>(map.out_rows));
  std::iota(rows.begin(), rows.end(), 0);
  std::stable_sort(rows.begin(), rows.end(), [&](std::int32_t a, std::int32_t b) {
    const std::uint64_t* x = key.data() + static_cast<std::size_t>(a) * words;
    const std::uint64_t* y = key.data() + static_cast<std::size_t>(b) * words;
    return std::lexicographical_compare(x, x + words, y, y + words);
  });
  return rows;
}

/// Appends the tiles of one split.
inline void append_tiles(HostTileMap& result, const KernelMapView& map,
                         const std::vector<std::int32_t>& table,
                         const std::vector<std::int32_t>& offsets,
                         const std::vector<std::int32_t>& rows, int split) {
  std::vector<std::int32_t> ascending = offsets;
  std::sort(ascending.begin(), ascending.end());
  const auto tile_rows = static_cast<std::size_t>(result.tile_rows);
  for (std::size_t first = 0; first < rows.size(); first += tile_rows) {
    const auto tile = static_cast<std::int32_t>(result.out_row.size() / tile_rows);
    for (std::size_t p = first; p < first + tile_rows; ++p)
      result.out_row.push_back(p < rows.size() ? rows[p] : -1);
    const auto begin = static_cast<std::int32_t>(result.entry.size());
    for (const std::int32_t k : ascending) {
      std::vector<std::int32_t> in(tile_rows, -1);
      std::uint32_t blocks = 0;
      for (std::size_t p = 0; p < tile_rows && first + p < rows.size(); ++p) {
        in[p] = table[static_cast<std::size_t>(rows[first + p] * map.offsets + k)];
        if (in[p] >= 0) blocks |= 1u << p / kBlockRows;
      }
      if (blocks == 0) continue;
      result.entry.push_back({static_cast<std::uint16_t>(k), static_cast<std::uint16_t>(blocks)});
      result.in_row.insert(result.in_row.end(), in.begin(), in.end());
    }
    result.order.push_back({tile, begin, static_cast<std::int32_t>(result.entry.size()), split});
  }
}

}   // namespace detail

/// Offsets are dealt to `splits` by frequency, one after the other. Unsorted tiles follow the rows.
inline HostTileMap host_tile_map(const KernelMapView& map, std::int32_t tile_rows, int splits = 1,
                                 bool sorted = true) {
  HostTileMap result;
  result.tile_rows = tile_rows;
  result.offsets = static_cast<std::int32_t>(map.offsets);
  result.in_rows = map.in_rows;
  result.out_rows = map.out_rows;
  result.splits = splits;
  const std::vector<std::int32_t> table = detail::neighbour_table(map);
  const std::vector<std::int32_t> frequent = detail::by_frequency(map);
  for (int split = 0; split < splits; ++split) {
    std::vector<std::int32_t> offsets;
    for (std::size_t i = static_cast<std::size_t>(split); i < frequent.size();
         i += static_cast<std::size_t>(splits))
      offsets.push_back(frequent[i]);
    std::vector<std::int32_t> rows(static_cast<std::size_t>(map.out_rows));
    std::iota(rows.begin(), rows.end(), 0);
    if (sorted) rows = detail::rows_by_mask(map, table, offsets);
    detail::append_tiles(result, map, table, offsets, rows, split);
  }
  std::stable_sort(result.order.begin(), result.order.end(),
                   [](const TileRun& a, const TileRun& b) {
                     return a.entry_end - a.entry_begin > b.entry_end - b.entry_begin;
                   });
  return result;
}

}   // namespace pumice::test
