// Reading the maps that device code has built, and holding them beside those of the CPU.
#pragma once

#include <algorithm>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/maps/kernel_map.hpp>

#include "formats/cuda/cut_maps.hpp"

namespace pumice::test {

/// (offset, output row, input row)
using DevicePair = std::tuple<int, std::int32_t, std::int32_t>;

inline std::vector<DevicePair> pairs_of(const KernelMapView& map) {
  std::vector<DevicePair> pairs;
  for (std::int64_t k = 0; k < map.offsets; ++k) {
    for (auto i = map.offset_begin[static_cast<std::size_t>(k)];
         i < map.offset_begin[static_cast<std::size_t>(k) + 1]; ++i) {
      pairs.emplace_back(static_cast<int>(k), map.out[static_cast<std::size_t>(i)],
                         map.in[static_cast<std::size_t>(i)]);
    }
  }
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

/// Everything a tile map promises, but for its pairs, which are returned.
inline std::vector<DevicePair> check_tiles(const TileMapRef& map, std::int64_t entries,
                                           int splits) {
  std::vector<DevicePair> pairs;
  const std::int64_t tiles = map.tiles.rows();
  const std::int64_t rows = map.out_rows.rows();
  EXPECT_EQ(tiles, splits * ((rows + map.tile_rows - 1) / map.tile_rows));
  std::vector<bool> tile_seen(static_cast<std::size_t>(tiles));
  std::vector<int> entry_seen(static_cast<std::size_t>(entries));
  std::vector<std::set<int>> offsets_of_split(static_cast<std::size_t>(splits));
  std::vector<std::multiset<std::int32_t>> rows_of_split(static_cast<std::size_t>(splits));
  std::int32_t longest = map.offsets;
  std::int32_t before = -1;   // the tile before, where it is as long
  std::vector<TileRun> by_tile(static_cast<std::size_t>(tiles));
  for (std::int64_t i = 0; i < tiles; ++i) {
    const TileRun run = map.tile_order[i];
    EXPECT_FALSE(tile_seen[static_cast<std::size_t>(run.tile)]);
    tile_seen[static_cast<std::size_t>(run.tile)] = true;
    const std::int32_t length = run.entry_end - run.entry_begin;
    if (map.offsets < 256) {
      EXPECT_LE(length, longest) << "a longer tile starts later";
      if (length == longest) {
        EXPECT_GT(run.tile, before) << "tiles that are as long have another order";
      }
    }
    longest = length;
    before = run.tile;
    by_tile[static_cast<std::size_t>(run.tile)] = run;
    EXPECT_EQ(run.split, run.tile / (tiles / splits));
    const auto split = static_cast<std::size_t>(run.split);
    const std::int32_t* const out = map.out_row + std::int64_t{run.tile} * map.tile_rows;
    for (int p = 0; p < map.tile_rows; ++p) {
      if (out[p] >= 0) rows_of_split[split].insert(out[p]);
    }
    int previous = -1;
    for (std::int32_t e = run.entry_begin; e < run.entry_end; ++e) {
      ++entry_seen[static_cast<std::size_t>(e)];
      const TileEntry entry = map.entry[e];
      EXPECT_GT(int{entry.offset}, previous);
      previous = entry.offset;
      offsets_of_split[split].insert(entry.offset);
      unsigned blocks = 0;
      for (int p = 0; p < map.tile_rows; ++p) {
        const std::int32_t in = map.in_row[std::int64_t{e} * map.tile_rows + p];
        if (in < 0) {
          EXPECT_EQ(in, -1);
          continue;
        }
        EXPECT_GE(out[p], 0);
        blocks |= 1u << (p / kBlockRows);
        pairs.emplace_back(entry.offset, out[p], in);
      }
      EXPECT_EQ(unsigned{entry.blocks}, blocks);
      EXPECT_NE(blocks, 0u);
    }
  }
  EXPECT_TRUE(std::all_of(entry_seen.begin(), entry_seen.end(), [](int n) { return n == 1; }));
  std::int64_t end = 0;
  for (const TileRun& run : by_tile) {
    EXPECT_EQ(run.entry_begin, end) << "entries are not in the order of tiles";
    end = run.entry_end;
  }
  EXPECT_EQ(end, entries);
  std::set<int> all_offsets;
  std::size_t of_splits = 0;
  for (std::size_t split = 0; split < rows_of_split.size(); ++split) {
    EXPECT_EQ(rows_of_split[split].size(), static_cast<std::size_t>(rows));
    EXPECT_EQ(
        std::set<std::int32_t>(rows_of_split[split].begin(), rows_of_split[split].end()).size(),
        static_cast<std::size_t>(rows));
    of_splits += offsets_of_split[split].size();
    all_offsets.insert(offsets_of_split[split].begin(), offsets_of_split[split].end());
  }
  EXPECT_EQ(all_offsets.size(), of_splits) << "an offset is in two splits";
  std::sort(pairs.begin(), pairs.end());
  return pairs;
}

inline void expect_same_pairs(const PairListRef& device, const KernelMapView& cpu) {
  ASSERT_FALSE(device.pairs.poisoned());
  ASSERT_EQ(device.pairs.rows(), cpu.pairs());
  EXPECT_TRUE(std::equal(cpu.offset_begin.begin(), cpu.offset_begin.end(), device.offset_begin));
  EXPECT_TRUE(std::equal(cpu.in.begin(), cpu.in.end(), device.in));
  EXPECT_TRUE(std::equal(cpu.out.begin(), cpu.out.end(), device.out));
}

/// Word for word: the same rows at the same places.
inline void expect_same_tiles(const TileMapRef& a, const TileMapRef& b) {
  ASSERT_EQ(a.tiles.rows(), b.tiles.rows());
  std::int64_t entries = 0;
  for (std::int64_t i = 0; i < a.tiles.rows(); ++i) {
    EXPECT_EQ(a.tile_order[i].tile, b.tile_order[i].tile);
    EXPECT_EQ(a.tile_order[i].entry_begin, b.tile_order[i].entry_begin);
    EXPECT_EQ(a.tile_order[i].entry_end, b.tile_order[i].entry_end);
    EXPECT_EQ(a.tile_order[i].split, b.tile_order[i].split);
    entries = std::max<std::int64_t>(entries, a.tile_order[i].entry_end);
  }
  EXPECT_TRUE(std::equal(a.out_row, a.out_row + a.tiles.rows() * a.tile_rows, b.out_row));
  EXPECT_TRUE(std::equal(a.in_row, a.in_row + entries * a.tile_rows, b.in_row));
  for (std::int64_t e = 0; e < entries; ++e) {
    EXPECT_EQ(a.entry[e].offset, b.entry[e].offset);
    EXPECT_EQ(a.entry[e].blocks, b.entry[e].blocks);
  }
}

inline void expect_same_map(const cuda::CutMap& device, const KernelMapView& cpu, int splits) {
  ASSERT_FALSE(device.tiles().tiles.poisoned());
  ASSERT_FALSE(device.entries().poisoned());
  EXPECT_EQ(check_tiles(device.tiles(), device.entries().rows(), splits), pairs_of(cpu));
  if (device.pairs().offset_begin != nullptr) expect_same_pairs(device.pairs(), cpu);
}

}   // namespace pumice::test
