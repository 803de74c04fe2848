// From sorted keys to coordinate sets: the distinct cells of one level, or of a whole pyramid, each
// with its blocks. A coarser cell's key is a finer one's without its lowest bits, so one look at
// neighbouring keys tells for every level at once whether a cell begins there:
//
//   key            highest bit that changed     level 0   its blocks   level 1   …
//   0…0 010 011        (first)                    ●           ●           ●
//   0…0 010 101          2                        ●           ·           ·
//   0…0 110 000          5                        ●           ·           ●
//   0…1 000 000          6                        ●           ●           ●
//                                                ≥ 0         ≥ 6         ≥ 3
//
// Two launches for all levels: `write_cells` counts the beginnings in each tile of 1,024 keys,
// learns by looking back how many there are before (grid/look_back.h), and writes; the last tile
// says how many there are in all, or what is wrong. `build_blocks` collects each block's cells and
// puts it into its table.
#pragma once

#include <pumice/block/scan.h>
#include <pumice/coords/block_table.h>
#include <pumice/coords/level_arguments.h>
#include <pumice/coords/row_trouble.h>
#include <pumice/grid/look_back.h>
#include <pumice/thread/report.h>

namespace pumice {

PUMICE_DEVICE int counter_shift(const LevelArguments& a, int counter) {
  return a.level[counter / 2].shift + (counter % 2 == 0 ? 0 : kBlockBits);
}

/// Position of the highest bit in which element `i` differs from the one before it: -1 when it
/// repeats it or there is no such element, 64 for the first.
PUMICE_DEVICE int highest_change(const LevelArguments& a, int64_t i, int64_t elements) {
  if (i >= elements) return -1;
  if (i == 0) return 64;
  return highest_bit(a.keys[i] ^ a.keys[i - 1]);
}

/// Whether a cell or block of `counter` begins at an element.
PUMICE_DEVICE bool begins(const LevelArguments& a, int counter, int change, uint64_t key) {
  return change >= counter_shift(a, counter) &&
         (counter % 2 == 1 || inside_box(a.box, a.box_layout, key >> a.level[counter / 2].shift));
}

/// How many cells and blocks of each level begin in the parts of a tile: elements i * 256 + 32 * w
/// … of item i and warp w.
struct TileCounts {
  static constexpr int kWarps = kLevelThreads / kWarpThreads;
  static constexpr int kParts = kLevelItems * kWarps;
  using Parts = uint32_t[kParts][kLevelCounters];
  Parts& parts;

  /// Of the elements of this block's tile, all threads together.
  PUMICE_DEVICE void count(const LevelArguments& a, const int (&change)[kLevelItems],
                           const uint64_t (&key)[kLevelItems]) {
    PUMICE_UNROLL
    for (int item = 0; item < kLevelItems; ++item) {
      for (int counter = 0; counter < 2 * a.levels; ++counter) {
        const uint32_t lanes = warp_ballot(begins(a, counter, change[item], key[item]));
        if (lane_index() == 0) {
          parts[item * kWarps + warp_index()][counter] = static_cast<uint32_t>(popcount(lanes));
        }
      }
    }
    block_sync();
  }
};

/// Element `item` of this thread.
PUMICE_DEVICE int64_t element_of(int32_t tile, int item) {
  return int64_t{tile} * kLevelTile + item * kLevelThreads + thread_index();
}

PUMICE_DEVICE void load_tile(const LevelArguments& a, int32_t tile, int64_t elements,
                             int (&change)[kLevelItems], uint64_t (&key)[kLevelItems]) {
  PUMICE_UNROLL
  for (int item = 0; item < kLevelItems; ++item) {
    const int64_t i = element_of(tile, item);
    change[item] = highest_change(a, i, elements);
    key[item] = i < elements ? a.keys[i] : 0;
  }
}

PUMICE_DEVICE void note_repeats(const LevelArguments& a, int32_t tile, int64_t elements,
                                const int (&change)[kLevelItems]) {
  PUMICE_UNROLL
  for (int item = 0; item < kLevelItems; ++item) {
    const int64_t i = element_of(tile, item);
    if (i >= elements || change[item] >= 0) continue;
    note_row(a.repeated, a.values == nullptr ? static_cast<uint32_t>(i) : a.values[i]);
  }
}

PUMICE_DEVICE void publish_counts(const Level& level, int64_t rows, int64_t blocks) {
  *level.row_count = rows;
  if (level.block_count != nullptr) *level.block_count = blocks;
}

/// Poisons every set that is to be made.
PUMICE_DEVICE void poison_levels(const LevelArguments& a) {
  for (int level = 0; level < a.levels; ++level)
    publish_counts(a.level[level], kPoison, kPoison);
}

/// Writes the counts of a level. A level that needs more room says how much: its count stays.
PUMICE_DEVICE void publish_level(const LevelArguments& a, const Level& level, int64_t rows,
                                 int64_t blocks) {
  if (rows > level.row_capacity) {
    report(a.status, kOverCapacity, level.row_site, rows, level.row_capacity);
    blocks = kPoison;
  } else if (level.block_count != nullptr && blocks > level.block_capacity) {
    report(a.status, kOverCapacity, level.block_site, blocks, level.block_capacity);
    rows = kPoison;
  }
  publish_counts(level, rows, blocks);
}

/// Whether the elements are wrong, which is then said, and every level poisoned.
PUMICE_DEVICE bool refuse_elements(const LevelArguments& a) {
  const int64_t elements = a.elements.rows();
  if (a.elements.poisoned()) {
    report(a.status, kPoisonedInput, a.site, *a.elements.count, a.elements.capacity);
  } else if (a.outside != nullptr && a.outside->rows > 0) {
    report(a.status, kOutsideLayout, a.site, a.outside->rows, elements,
           static_cast<int32_t>(a.outside->last));
  } else if (a.repeated != nullptr && a.repeated->rows > 0) {
    report(a.status, kDuplicateRows, a.site, a.repeated->rows, elements,
           static_cast<int32_t>(a.repeated->last));
  } else {
    return false;
  }
  poison_levels(a);
  return true;
}

/// What is wrong, or how many cells and blocks each level has.
PUMICE_DEVICE void publish_levels(const LevelArguments& a, const uint32_t (&sums)[kLevelCounters]) {
  if (refuse_elements(a)) return;
  for (int level = 0; level < a.levels; ++level)
    publish_level(a, a.level[level], sums[2 * level], sums[2 * level + 1]);
}

/// Turns the counts of a tile's parts into what comes before each, from the grid's beginning on.
/// `sums` becomes what there is up to the end of the tile.
PUMICE_DEVICE void scan_parts(const LevelArguments& a, int32_t tile, TileCounts::Parts& parts,
                              uint32_t (&sums)[kLevelCounters]) {
  const int counter = thread_index();
  if (counter < 2 * a.levels) {
    uint32_t mine = 0;
    for (int part = 0; part < TileCounts::kParts; ++part)
      mine += parts[part][counter];
    fence_to_device();   // repeats noted in this tile are known to whoever hears of its counts
    say_part(a.states + counter, kLevelCounters, tile, mine);
    uint32_t before = look_back(a.states + counter, kLevelCounters, tile);
    fence_to_device();   // and those of the tiles before it, by whoever hears of the sum
    say_sum(a.states + counter, kLevelCounters, tile, before + mine);
    sums[counter] = before + mine;
    for (int part = 0; part < TileCounts::kParts; ++part) {
      const uint32_t here = parts[part][counter];
      parts[part][counter] = before;
      before += here;
    }
  }
  block_sync();
}

/// Writes what begins at one element; `through` are the cells and blocks of this level that begin
/// up to and with it.
PUMICE_DEVICE void write_level(const Level& level, uint64_t key, bool begins_cell,
                               bool begins_block, uint32_t cells_through, uint32_t blocks_through) {
  if (!begins_cell || cells_through > level.row_capacity) return;
  level.keys[cells_through - 1] = key >> level.shift;
  if (!begins_block || level.block_key == nullptr || blocks_through > level.block_capacity) return;
  level.block_key[blocks_through - 1] = key >> level.shift >> kBlockBits;
  level.base_rank[blocks_through - 1] = static_cast<int32_t>(cells_through - 1);
}

/// The first level's relation to element `i`, which falls into `row`.
PUMICE_DEVICE void relate_element(const LevelArguments& a, int64_t i, int64_t elements, int32_t row,
                                  bool begins_cell) {
  if (i >= elements || row >= a.level[0].row_capacity) return;
  const uint32_t from = a.values == nullptr ? static_cast<uint32_t>(i) : a.values[i];
  if (a.order != nullptr && begins_cell) a.order[row] = static_cast<int32_t>(from);
  if (a.begin != nullptr && begins_cell) a.begin[row] = i;
  if (a.begin != nullptr && i + 1 == elements) a.begin[row + 1] = elements;
  if (a.row_of != nullptr) a.row_of[from] = row;
}

/// One block a tile. A level that has no room for all is written as far as it goes, and poisoned.
// Asking for four blocks at once frees registers; left alone, the assembler aims at 40 for sm_86.
PUMICE_KERNEL PUMICE_THREADS(kLevelThreads, 4) void write_cells(PUMICE_ARGUMENT(LevelArguments) a) {
  wait_for_previous();
  using Sums = uint32_t[kLevelCounters];
  PUMICE_BLOCK_SHARED(TileCounts::Parts, parts);
  PUMICE_BLOCK_SHARED(Sums, sums);
  const int32_t tile = take_tile(a.ticket);
  const int64_t elements = a.elements.rows();
  const int64_t first = int64_t{tile} * kLevelTile;
  if (thread_index() < kLevelCounters) sums[thread_index()] = 0;
  if (first >= elements) {
    block_sync();
    if (tile == 0 && thread_index() == 0) publish_levels(a, sums);
    return;
  }
  int change[kLevelItems];
  uint64_t key[kLevelItems];
  load_tile(a, tile, elements, change, key);
  if (a.repeated != nullptr) note_repeats(a, tile, elements, change);
  TileCounts{parts}.count(a, change, key);
  scan_parts(a, tile, parts, sums);
  for (int number = 0; number < a.levels; ++number) {
    const Level& level = a.level[number];
    PUMICE_UNROLL
    for (int item = 0; item < kLevelItems; ++item) {
      const int part = item * TileCounts::kWarps + warp_index();
      const bool cell = begins(a, 2 * number, change[item], key[item]);
      const bool block = begins(a, 2 * number + 1, change[item], key[item]);
      const uint32_t through = lanes_below() << 1 | 1;
      const auto cells =
          parts[part][2 * number] + static_cast<uint32_t>(popcount(warp_ballot(cell) & through));
      const auto blocks = parts[part][2 * number + 1] +
                          static_cast<uint32_t>(popcount(warp_ballot(block) & through));
      write_level(level, key[item], cell, block, cells, blocks);
      if (number == 0) {
        relate_element(a, element_of(tile, item), elements, static_cast<int32_t>(cells - 1), cell);
      }
    }
  }
  if (thread_index() == 0 && first + kLevelTile >= elements) publish_levels(a, sums);
}

/// Which cells a block has: those from its first up to the next block's.
PUMICE_DEVICE uint64_t collect_cells(const Level& level, int64_t block, int64_t blocks,
                                     int64_t rows) {
  const int64_t end = block + 1 < blocks ? level.base_rank[block + 1] : rows;
  uint64_t occupancy = 0;
  for (int64_t rank = level.base_rank[block]; rank < end; ++rank)
    occupancy |= cell_bit(level.keys[rank]);
  return occupancy;
}

/// Launched with an axis y of levels and enough blocks along x for the largest.
PUMICE_KERNEL PUMICE_THREADS(kBlockBuildThreads) void build_blocks(PUMICE_ARGUMENT(LevelArguments)
                                                                       a) {
  wait_for_previous();
  const Level& level = a.level[block_index_y()];
  const int64_t blocks = RowCountRef{level.block_count, level.block_capacity}.rows();
  const int64_t rows = RowCountRef{level.row_count, level.row_capacity}.rows();
  const int64_t block = global_thread_index();
  if (block >= blocks || rows == 0) return;
  const uint64_t occupancy = collect_cells(level, block, blocks, rows);
  level.occupancy[block] = occupancy;
  bool is_new = false;
  const uint32_t slot = claim_slot(level.slots, level.slot_mask, level.block_key[block], is_new);
  level.slots[slot].occupancy = occupancy;
  level.slot_rank[slot] = level.base_rank[block];
}

}   // namespace pumice
