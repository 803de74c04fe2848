// An order of outputs in which those with the same offsets stand together, so that a tile of them
// can skip most offsets.
//
//   mask of a row     27 bits, one an offset
//   relabelled        the rarest offset highest: rows that share a rare one come together
//   Gray-decoded      sorting by it visits masks in the order of a Gray code, in which
//                     neighbours differ in one bit
//   key               [ segment | decoded mask ]   a segment is a map, or one split of one
//
// One sort serves all segments of a batch. A split has every S-th offset in order of frequency, and
// an order of its own. Where a split has more than 58 offsets, neighbours in frequency share a bit.
#pragma once

#include <pumice/maps/map_task.h>

namespace pumice {

inline constexpr int kMaskKeyBits = 58;   // and 5 for the segment

/// Label of each offset: how many are more frequent. For one warp or more of a block; the counts
/// are complete.
PUMICE_DEVICE void rank_offsets(const MapTask& task, uint32_t* counts, uint16_t* labels) {
  const int volume = task.relation.window.volume;
  for (int k = thread_index(); k < volume; k += kOrderThreads)
    counts[k] = task.offset_count[k];
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
PUMICE_DEVICE int split_offsets(const MapTask& task) {
  return (task.relation.window.volume + task.splits - 1) / task.splits;
}

/// Bit of an offset in the keys of its split.
PUMICE_DEVICE int key_bit(const MapTask& task, int label) {
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

/// Where the segments of a batch begin among the elements of its sort.
struct SegmentBegins {
  int64_t at[kMaxSegments + 1];
};

PUMICE_DEVICE void find_segments(const MapBatch& batch, SegmentBegins& begins) {
  using TaskRows = int64_t[kMaxTasks];
  PUMICE_BLOCK_SHARED(TaskRows, rows_of_task);
  if (thread_index() < batch.tasks)
    rows_of_task[thread_index()] = rows_of(batch, batch.task[thread_index()]);
  block_sync();
  if (thread_index() == 0) {
    int64_t next = 0;
    int segment = 0;
    for (int task = 0; task < batch.tasks; ++task) {
      const int64_t rows = rows_of_task[task];
      for (int split = 0; split < batch.task[task].splits; ++split, next += rows)
        begins.at[segment++] = next;
    }
    begins.at[segment] = next;
  }
  block_sync();
}

/// The key of a row in one split, without its segment. Without labels, offsets are their own.
PUMICE_DEVICE uint64_t split_key(const MapTask& task, const uint16_t* labels, const uint32_t* mask,
                                 int split) {
  uint64_t code = 0;
  for (int word = 0; word < task.words; ++word) {
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

/// One thread a row; each writes a key for each split. `mask_bits` are below the segment's.
template <class Key> PUMICE_DEVICE void write_gray_keys(const MapBatch& batch) {
  using Counts = uint32_t[kMostRankedOffsets];
  using Labels = uint16_t[kMostRankedOffsets];
  PUMICE_BLOCK_SHARED(SegmentBegins, begins);
  PUMICE_BLOCK_SHARED(Counts, counts);
  PUMICE_BLOCK_SHARED(Labels, ranked);
  const MapTask& task = task_of_block(batch);
  const int64_t chunk = block_index() - task.first_block;
  find_segments(batch, begins);
  if (block_index() == 0) {
    for (int i = thread_index(); i <= batch.segments; i += kOrderThreads)
      batch.segment_begin[i] = begins.at[i];
  }
  const int volume = task.relation.window.volume;
  const bool ranks = volume <= kMostRankedOffsets;
  if (ranks) rank_offsets(task, counts, ranked);
  for (int k = thread_index(); chunk == 0 && k < volume; k += kOrderThreads)
    task.label[k] = ranks ? ranked[k] : static_cast<uint16_t>(k);
  const int64_t rows = begins.at[task.first_segment + 1] - begins.at[task.first_segment];
  const int64_t rank = chunk * kOrderThreads + thread_index();
  if (rank >= rows) return;
  const bool is_short = task.splits == 1 && task.words == 1;
  for (int split = 0; split < task.splits; ++split) {
    const int segment = task.first_segment + split;
    const Key offsets = is_short
                            ? short_key<Key>(ranked, task.mask[rank])
                            : static_cast<Key>(split_key(task, ranks ? ranked : nullptr,
                                                         task.mask + rank * task.words, split));
    const Key key = static_cast<Key>(segment) << batch.mask_bits | offsets;
    const int64_t to = begins.at[segment] + rank;
    static_cast<Key*>(batch.keys)[to] = key;
    batch.values[to] = static_cast<uint32_t>(rank);
  }
}

PUMICE_KERNEL PUMICE_THREADS(kOrderThreads) void gray_keys_u32(PUMICE_ARGUMENT(MapBatch) batch) {
  write_gray_keys<uint32_t>(batch);
}
PUMICE_KERNEL PUMICE_THREADS(kOrderThreads) void gray_keys_u64(PUMICE_ARGUMENT(MapBatch) batch) {
  write_gray_keys<uint64_t>(batch);
}

}   // namespace pumice
