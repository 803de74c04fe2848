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

/// Offsets of each split: as many, within one.
PUMICE_DEVICE int split_offsets(const CutTask& task) {
  return (task.map.relation.window.volume + task.splits - 1) / task.splits;
}

/// Bit of an offset in the keys of its split.
PUMICE_DEVICE int key_bit(const CutTask& task, int label) {
  const int place = label / task.splits;
  const int offsets = split_offsets(task);
  return offsets <= kMaskKeyBits ? place : place * kMaskKeyBits / offsets;
}

template <class Code> PUMICE_DEVICE Code gray_decode(Code code) {
  PUMICE_UNROLL
  for (int shift = 1; shift < static_cast<int>(8 * sizeof(Code)); shift *= 2)
    code ^= code >> shift;
  return code;
}

/// The key of a row in one split. Without labels, offsets are their own.
PUMICE_DEVICE uint64_t split_key(const CutTask& task, const uint16_t* labels, const uint32_t* mask,
                                 int split) {
  uint64_t code = 0;
  for (int word = 0; word < task.map.words; ++word) {
    for (uint32_t left = mask[word]; left != 0; left &= left - 1) {
      const int k = word * kWarpThreads + lowest_bit(left);
      const int label = labels == nullptr ? k : labels[k];
      if (label % task.splits == split) code |= uint64_t{1} << key_bit(task, label);
    }
  }
  return gray_decode(code);
}

/// The same where there is one split, and one bit of a key for each offset of one word.
template <class Key> PUMICE_DEVICE Key short_key(const uint16_t* labels, uint32_t mask) {
  Key code = 0;
  for (; mask != 0; mask &= mask - 1)
    code |= Key{1} << labels[lowest_bit(mask)];
  return gray_decode(code);
}

/// The keys of a chunk of rows in one split, and how often each of their digits occurs; for a whole
/// block.
template <class Key>
PUMICE_DEVICE void write_split_keys(const CutTask& task, const uint16_t* labels, int split,
                                    Key* keys, int64_t first, int64_t rows) {
  PUMICE_BLOCK_SHARED(DigitCounts, counts);
  const DigitTotals& totals = task.totals[split];
  const bool counting = totals.count != nullptr;
  if (counting) counts.clear<kOrderThreads>(totals.digits);
  const bool is_short = task.splits == 1 && task.map.words == 1;
  PUMICE_UNROLL
  for (int item = 0; item < kOrderItems; ++item) {
    const int64_t rank = first + item * kOrderThreads + thread_index();
    if (rank >= rows) continue;
    const uint32_t* const mask = task.map.mask + rank * task.map.words;
    const Key key = is_short ? short_key<Key>(labels, *mask)
                             : static_cast<Key>(split_key(task, labels, mask, split));
    keys[rank] = key;
    if (counting) counts.count(totals.digits, key);
  }
  if (counting) counts.add_to<kOrderThreads>(totals);
  block_sync();   // before the next split clears the counts
}

/// A block kOrderRows rows.
template <class Key> PUMICE_DEVICE void write_gray_keys(const CutBatch& batch) {
  using Counts = uint32_t[kMostRankedOffsets];
  using Labels = uint16_t[kMostRankedOffsets];
  PUMICE_BLOCK_SHARED(Counts, counts);
  PUMICE_BLOCK_SHARED(Labels, ranked);
  const auto [task, chunk] = task_of_block(batch);
  const int volume = task.map.relation.window.volume;
  const int64_t rows = rows_of(batch.set, task.map);
  const int64_t first = int64_t{chunk} * kOrderRows;
  if (chunk == 0 && thread_index() == 0) *task.ordered_rows = rows;
  if (chunk > 0 && first >= rows) return;
  const bool ranks = volume <= kMostRankedOffsets;
  if (ranks) rank_offsets(task, counts, ranked);
  for (int k = thread_index(); chunk == 0 && k < volume; k += kOrderThreads)
    task.label[k] = ranks ? ranked[k] : static_cast<uint16_t>(k);
  const int64_t capacity = batch.set[task.map.out_set].rows.capacity;
  for (int split = 0; split < task.splits; ++split) {
    if (task.unsorted == nullptr) {
      write_split_keys(task, ranks ? ranked : nullptr, split,
                       static_cast<Key*>(task.keys) + split * capacity, first, rows);
      continue;
    }
    for (int64_t rank = first + thread_index(); rank < first + kOrderRows && rank < rows;
         rank += kOrderThreads)
      task.unsorted[split * capacity + rank] = static_cast<uint32_t>(rank);
  }
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
