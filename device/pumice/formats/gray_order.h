// An order of outputs in which those with the same offsets stand together, so that a tile of them
// can skip most offsets.
//
//   mask of a row     27 bits, one an offset
//   relabelled        the rarest offset highest: rows that share a rare one come together
//   Gray-decoded      sorting by it visits masks in the order of a Gray code, in which
//                     neighbours differ in one bit
//
// One sort serves all maps of a batch that are sorted, side by side. A split has every S-th offset
// in order of frequency, and an order of its own. Where a split has more than 63 offsets,
// neighbours in frequency share a bit.
#pragma once

#include <pumice/formats/cut_arguments.h>
#include <pumice/grid/digit_counts.h>
#include <pumice/maps/batch_task.h>

namespace pumice {

/// Label of each offset: how many are more frequent. For one warp or more of a block; the counts
/// are complete.
PUMICE_DEVICE void rank_offsets(const CutTask& task, uint32_t* counts, uint16_t* labels) {
  const int volume = task.map.relation.window.volume;
  for (int k = thread_index(); k < volume; k += kOrderThreads)
    counts[k] = task.map.offset_count[k];
  block_sync();
  for (int k = thread_index(); k < volume; k += kOrderThreads) {
    int before = 0;
    for (int other = 0; other < volume; ++other) {
      const bool more = counts[other] > counts[k];
      before += more || (counts[other] == counts[k] && other < k) ? 1 : 0;
    }
    labels[k] = static_cast<uint16_t>(before);
  }
  block_sync();
}

/// Bit of an offset in the keys of its split; all splits have as many offsets, within one.
PUMICE_DEVICE int key_bit(const CutTask& task, int label) {
  const int place = label / task.splits;
  const int offsets = (task.map.relation.window.volume + task.splits - 1) / task.splits;
  return offsets <= kMaskKeyBits ? place : place * kMaskKeyBits / offsets;
}

template <class Code> PUMICE_DEVICE Code gray_decode(Code code) {
  PUMICE_UNROLL
  for (int shift = 1; shift < static_cast<int>(8 * sizeof(Code)); shift *= 2)
    code ^= code >> shift;
  return code;
}

/// Which offsets a split has, and the bit of each in its keys: worked out once for a block, since a
/// division for each bit of each row made this kernel take 82 us in place of 14 (MinkUNet42, H100).
struct SplitOffsets {
  uint32_t member[kMostRankedOffsets / kWarpThreads];   // a word for those of a word of masks
  uint8_t bit[kMostRankedOffsets];

  /// For a whole block; `labels` are complete.
  PUMICE_DEVICE void find(const CutTask& task, const uint16_t* labels, int split) {
    for (int word = thread_index(); word < task.map.words; word += kOrderThreads)
      member[word] = 0;
    block_sync();
    const int volume = task.map.relation.window.volume;
    for (int k = thread_index(); k < volume; k += kOrderThreads) {
      if (labels[k] % task.splits != split) continue;
      bit[k] = static_cast<uint8_t>(key_bit(task, labels[k]));
      atomic_or(&member[k / kWarpThreads], uint32_t{1} << k % kWarpThreads);
    }
    block_sync();
  }
  /// What a word of a row's mask adds to the code of the row.
  template <class Key> PUMICE_DEVICE Key code_of(uint32_t mask, int word) const {
    Key code = 0;
    for (uint32_t left = mask & member[word]; left != 0; left &= left - 1)
      code |= Key{1} << bit[word * kWarpThreads + lowest_bit(left)];
    return code;
  }
  template <class Key> PUMICE_DEVICE Key key_of(const uint32_t* mask, int words) const {
    Key code = 0;
    for (int word = 0; word < words; ++word)
      code |= code_of<Key>(mask[word], word);
    return gray_decode(code);
  }
};

/// The key of a row where there are too many offsets to be ranked: each is its own label.
template <class Key>
PUMICE_DEVICE Key unranked_key(const CutTask& task, const uint32_t* mask, int split) {
  uint64_t code = 0;
  for (int word = 0; word < task.map.words; ++word) {
    for (uint32_t left = mask[word]; left != 0; left &= left - 1) {
      const int label = word * kWarpThreads + lowest_bit(left);
      if (label % task.splits == split) code |= uint64_t{1} << key_bit(task, label);
    }
  }
  return static_cast<Key>(gray_decode(code));
}

/// kOrderRows rows in one split by a block, which counts how often each of their digits occurs.
template <class Key> PUMICE_DEVICE void write_gray_keys(const CutBatch& batch) {
  using Counts = uint32_t[kMostRankedOffsets];
  using Labels = uint16_t[kMostRankedOffsets];
  PUMICE_BLOCK_SHARED(Counts, counts);
  PUMICE_BLOCK_SHARED(Labels, ranked);
  PUMICE_BLOCK_SHARED(SplitOffsets, offsets);
  PUMICE_BLOCK_SHARED(DigitCounts, digits);
  const auto [task, block] = task_of_block(batch);
  const int split = block % task.splits;
  const int volume = task.map.relation.window.volume;
  const int64_t rows = rows_of(batch.set, task.map);
  const int64_t first = int64_t{block / task.splits} * kOrderRows;
  if (block == 0 && thread_index() == 0) *task.ordered_rows = rows;
  if (block > 0 && first >= rows) return;
  const bool ranks = volume <= kMostRankedOffsets;
  if (ranks) rank_offsets(task, counts, ranked);
  for (int k = thread_index(); block == 0 && k < volume; k += kOrderThreads)
    task.label[k] = ranks ? ranked[k] : static_cast<uint16_t>(k);
  const int64_t of_split = split * batch.set[task.map.out_set].rows.capacity;
  if (task.unsorted != nullptr) {
    for (int64_t rank = first + thread_index(); rank < first + kOrderRows && rank < rows;
         rank += kOrderThreads)
      task.unsorted[of_split + rank] = static_cast<uint32_t>(rank);
    return;
  }
  if (ranks) offsets.find(task, ranked, split);
  const DigitTotals& totals = task.totals[split];
  const bool counting = totals.count != nullptr;
  if (counting) digits.clear<kOrderThreads>(totals.digits);
  Key* const keys = static_cast<Key*>(task.keys) + of_split;
  const int words = task.map.words;
  uint32_t word[kOrderItems];   // read before the first key is written, so that no read waits
  PUMICE_UNROLL
  for (int item = 0; item < kOrderItems; ++item) {
    const int64_t rank = first + item * kOrderThreads + thread_index();
    word[item] = rank < rows && words == 1 ? task.map.mask[rank] : 0;
  }
  PUMICE_UNROLL
  for (int item = 0; item < kOrderItems; ++item) {
    const int64_t rank = first + item * kOrderThreads + thread_index();
    if (rank >= rows) continue;
    const uint32_t* const mask = task.map.mask + rank * words;
    const Key key = !ranks       ? unranked_key<Key>(task, mask, split)
                    : words == 1 ? gray_decode(offsets.template code_of<Key>(word[item], 0))
                                 : offsets.template key_of<Key>(mask, words);
    keys[rank] = key;
    if (counting) digits.count(totals.digits, key);
  }
  if (counting) digits.add_to<kOrderThreads>(totals);
}

PUMICE_KERNEL PUMICE_THREADS(kOrderThreads) void gray_keys_u32(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  write_gray_keys<uint32_t>(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kOrderThreads) void gray_keys_u64(PUMICE_ARGUMENT(CutBatch) batch) {
  wait_for_previous();
  write_gray_keys<uint64_t>(batch);
}

}   // namespace pumice
