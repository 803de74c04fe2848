// What kernel maps hold, as sets of (offset, input cell, output cell): of a map on the CPU, and of
// the lists and tiles that are cut from one on a device, whose rows may come in another order.
#pragma once

#include <algorithm>
#include <cstdint>
#include <set>
#include <tuple>

#include <pumice/core/copy.hpp>
#include <pumice/core/stream.hpp>
#include <pumice/maps/kernel_map.hpp>

#include "coords/cells.hpp"
#include "formats/cuda/map_formats.hpp"

namespace pumice::test {

using Entry = std::tuple<std::int64_t, Cell, Cell>;   // offset, input, output
using Entries = std::multiset<Entry>;

/// By row.
inline Cells cells_there(const CoordinateSetPtr& set, StreamView stream) {
  const auto values =
      copy_to_host(set->coordinates().data<std::int32_t>(), set->rows().capacity() * 4, stream);
  Cells cells;
  for (auto at = values.begin(); at != values.end(); at += 4)
    cells.emplace_back(at, at + 4);
  return cells;
}

inline Entries listed_entries(const KernelMap& map, StreamView stream) {
  const PairListRef list = cuda::MapFormats::of(map).pairs(false);
  const Cells in = cells_there(map.in(), stream), out = cells_there(map.out(), stream);
  const auto begin = copy_to_host(list.offset_begin, std::int64_t{list.offsets} + 1, stream);
  const auto from = copy_to_host(list.in, begin.back(), stream);
  const auto to = copy_to_host(list.out, begin.back(), stream);
  Entries entries;
  for (std::size_t k = 0; k + 1 < begin.size(); ++k) {
    for (auto i = static_cast<std::size_t>(begin[k]); i < static_cast<std::size_t>(begin[k + 1]);
         ++i)
      entries.emplace(static_cast<std::int64_t>(k), in.at(static_cast<std::size_t>(from[i])),
                      out.at(static_cast<std::size_t>(to[i])));
  }
  return entries;
}

inline Entries tiled_entries(const KernelMap& map, bool is_transposed, StreamView stream) {
  const TileMapRef tiles =
      cuda::MapFormats::of(map).tiles(is_transposed, {}, cuda::OffsetOrder::any);
  const Cells in = cells_there(map.in(), stream), out = cells_there(map.out(), stream);
  const auto count = copy_to_host(tiles.tiles.count, 1, stream).front();
  const auto runs = copy_to_host(tiles.tile_order, count, stream);
  const auto rows = copy_to_host(tiles.out_row, count * tiles.tile_rows, stream);
  std::int64_t last = 0;
  for (const TileRun& run : runs)
    last = std::max<std::int64_t>(last, run.entry_end);
  const auto entry = copy_to_host(tiles.entry, last, stream);
  const auto read = copy_to_host(tiles.in_row, last * tiles.tile_rows, stream);
  Entries entries;
  for (const TileRun& run : runs) {
    for (auto e = static_cast<std::size_t>(run.entry_begin);
         e < static_cast<std::size_t>(run.entry_end); ++e) {
      for (std::size_t p = 0; p < static_cast<std::size_t>(tiles.tile_rows); ++p) {
        const auto height = static_cast<std::size_t>(tiles.tile_rows);
        const std::int32_t to = rows[static_cast<std::size_t>(run.tile) * height + p];
        const std::int32_t from = read[e * height + p];
        if (from < 0) continue;
        const Cell& read_cell = (is_transposed ? out : in).at(static_cast<std::size_t>(from));
        const Cell& written = (is_transposed ? in : out).at(static_cast<std::size_t>(to));
        entries.emplace(entry[e].offset, is_transposed ? written : read_cell,
                        is_transposed ? read_cell : written);
      }
    }
  }
  return entries;
}

/// Those of a map of the CPU.
inline Entries entries_of(const KernelMap& map) {
  const KernelMapView view = map.view();
  const Cells in = cells_of(*map.in()), out = cells_of(*map.out());
  Entries entries;
  for (std::int64_t k = 0; k < view.offsets; ++k) {
    for (auto i = view.offset_begin[static_cast<std::size_t>(k)];
         i < view.offset_begin[static_cast<std::size_t>(k) + 1]; ++i)
      entries.emplace(k, in.at(static_cast<std::size_t>(view.in[static_cast<std::size_t>(i)])),
                      out.at(static_cast<std::size_t>(view.out[static_cast<std::size_t>(i)])));
  }
  return entries;
}

}   // namespace pumice::test
