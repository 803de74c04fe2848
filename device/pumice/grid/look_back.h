// Sums over the tiles before a tile, within one launch: a tile says what it holds as soon as it
// knows, then adds up what the tiles before it said, back to one that knows the sum up to itself.
// (Merrill and Garland, "Single-pass parallel prefix scan with decoupled look-back", 2016.)
//
//   tile        0      1      2      3            tile 3:  4 + 1, then tile 1 knows its sum: + 9
//   holds       7      2      1      4
//   says       Σ 7    Σ 9     1      4   ◀── and says Σ 14 to those behind it
//
// Tiles are numbered by a ticket, not by the block's number: whoever a tile waits for has started.
#pragma once

#include <pumice/platform.h>
#include <pumice/warp/scan.h>

namespace pumice {

/// Words of sums: the two highest bits say what the others are. The largest sum of 32 bits is
/// kMostTileSum.
template <class Word> inline constexpr Word kTileSaidPart = Word{1} << (8 * sizeof(Word) - 2);
template <class Word> inline constexpr Word kTileSaidSum = Word{2} << (8 * sizeof(Word) - 2);
inline constexpr uint32_t kMostTileSum = kTileSaidPart<uint32_t> - 1;

/// The number of this block's tile, in the order in which blocks start. `ticket` starts as 0.
PUMICE_DEVICE int32_t take_tile(uint32_t* ticket) {
  PUMICE_BLOCK_SHARED(uint32_t, tile);
  if (thread_index() == 0) tile = atomic_add(ticket, 1u);
  block_sync();
  return static_cast<int32_t>(tile);
}

/// Says what `tile` holds, so that others need not wait for what it learns; for one thread a
/// column. `states` is the column's word of tile 0, zeroed; those of the next tile lie `stride`
/// words on.
template <class Word>
PUMICE_DEVICE void say_part(Word* states, int64_t stride, int32_t tile, Word mine) {
  const Word what = tile == 0 ? kTileSaidSum<Word> : kTileSaidPart<Word>;
  store_relaxed(states + tile * stride, what | mine);
}

/// Says what there is up to the end of `tile`, which `look_back` told it.
template <class Word>
PUMICE_DEVICE void say_sum(Word* states, int64_t stride, int32_t tile, Word sum) {
  if (tile > 0) store_relaxed(states + tile * stride, kTileSaidSum<Word> | sum);
}

/// The sum over the tiles before `tile`, to be said on by `say_sum`.
template <class Word> PUMICE_DEVICE Word look_back(Word* states, int64_t stride, int32_t tile) {
  constexpr int kWindow = 16;
  Word before = 0;
  bool knows = tile == 0;   // and has said so as its part
  for (int32_t next = tile - 1; !knows;) {
    // All of them, wanted or not, so that they are under way together. A look before tile 0 sees
    // tile 0 again, but nobody goes on after that.
    Word said[kWindow];
    PUMICE_UNROLL
    for (int i = 0; i < kWindow; ++i)
      said[i] = load_relaxed(states + (next < i ? 0 : next - i) * stride);
    bool goes_on = true;
    int heard = 0;
    PUMICE_UNROLL
    for (int i = 0; i < kWindow; ++i) {
      goes_on = goes_on && said[i] != 0;
      before += goes_on ? said[i] & (kTileSaidPart<Word> - 1) : 0;
      heard += goes_on ? 1 : 0;
      knows = knows || (goes_on && (said[i] & kTileSaidSum<Word>) != 0);
      goes_on = goes_on && !knows;
    }
    next -= heard;
    if (heard == 0) pause_polling();
  }
  return before;
}

/// The same of one column of sums, by a whole warp: where hundreds of tiles start at once, looking
/// back 128 at a time takes a few rounds where one thread takes dozens. Every lane gets the sum.
template <class Word> PUMICE_DEVICE Word warp_look_back(Word* states, int32_t tile) {
  constexpr int kItems = 4;
  Word mine = 0;
  bool knows = false;
  for (int32_t next = tile - 1; next >= 0 && !knows;) {
    Word said[kItems];   // the nearest tiles first; before tile 0 lies nothing, which is a sum
    PUMICE_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const int32_t at = next - i * kWarpThreads - lane_index();
      said[i] = at < 0 ? kTileSaidSum<Word> : load_relaxed(states + at);
    }
    bool goes_on = true;
    int heard = 0;
    PUMICE_UNROLL
    for (int i = 0; i < kItems; ++i) {
      const uint32_t silent = warp_ballot(said[i] == 0);
      const uint32_t sums = warp_ballot((said[i] & kTileSaidSum<Word>) != 0);
      const int until_silent = silent == 0 ? kWarpThreads : lowest_bit(silent);
      const int until_sum = sums == 0 ? kWarpThreads : lowest_bit(sums);
      if (!goes_on) continue;
      knows = until_sum < until_silent;
      const int here = knows ? until_sum + 1 : until_silent;
      if (lane_index() < here) mine += said[i] & (kTileSaidPart<Word> - 1);
      heard += here;
      goes_on = here == kWarpThreads && !knows;
    }
    next -= heard;
    if (heard == 0) pause_polling();
  }
  return warp_sum(mine);
}

/// What there is up to the end of `tile`, for whoever is behind it; waits until it has been said.
template <class Word>
PUMICE_DEVICE Word sum_through(const Word* states, int64_t stride, int32_t tile) {
  Word said = load_relaxed(states + tile * stride);
  while ((said & kTileSaidSum<Word>) == 0) {
    pause_polling();
    said = load_relaxed(states + tile * stride);
  }
  return said & (kTileSaidPart<Word> - 1);
}

}   // namespace pumice
