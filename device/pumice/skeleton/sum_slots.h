// Adds the slots of a weight gradient, offset by offset and in the order of the blocks that filled
// them: the same bits every time.
#pragma once

#include <pumice/skeleton/chunk_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// Slots that are on their way at a time: added one after the other, each takes 0.36 us to come on
/// an H200, and the centre of a window has a third of all.
inline constexpr int32_t kSlotsAhead = 8;

/// Adds `count` slots that lie `pitch` elements apart to `sum` in their order, at most kSlotsAhead
/// of them. All are read before the first is added.
template <int32_t kCount>
PUMICE_DEVICE void add_slots(const float* first, int64_t pitch, int32_t count,
                             float (&sum)[kCount]) {
  float slot[kSlotsAhead][kCount];
  PUMICE_UNROLL
  for (int32_t i = 0; i < kSlotsAhead; ++i) {
    if (i < count)
      load_chunk<ElementType::f32, kCount * 4, true>(first, i * pitch, slot[i], kCount);
  }
  PUMICE_UNROLL
  for (int32_t i = 0; i < kSlotsAhead; ++i) {
    if (i >= count) break;
    PUMICE_UNROLL
    for (int32_t c = 0; c < kCount; ++c)
      sum[c] += slot[i][c];
  }
}

template <ElementType kOutput, int32_t kCount>
PUMICE_DEVICE void sum_slot_chunks(const SumSlotsArguments& arguments, const OffsetTable& table) {
  const int32_t offset = block_index_y();
  const int64_t elements = int64_t{arguments.in_channels} * arguments.columns;
  const int64_t chunks = table.chunks(), blocks = arguments.share_blocks;
  const int64_t first = table.chunk_begin(offset), end = table.chunk_begin(offset + 1);
  // With fewer chunks than blocks a block has one, or none and no slot; else every block of an
  // offset's first to its last has some of it.
  const bool all_have_some = chunks >= blocks;
  int64_t first_block = 0, slots = end - first;
  if (all_have_some && first < end) {
    first_block = block_of_chunk(chunks, first, blocks);
    slots = block_of_chunk(chunks, end - 1, blocks) - first_block + 1;
  }
  const int64_t first_row = int64_t{offset} * arguments.result_channels + arguments.first_channel;
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() * kCount; at < elements;
       at += int64_t{grid_size()} * block_size() * kCount) {
    float sum[kCount];
    fill(sum, 0.0f);
    const float* from = arguments.slots + offset * elements + at;
    if (all_have_some) {
      from += first_block * elements;
      int64_t left = slots;
      PUMICE_ROLLED
      for (; left >= kSlotsAhead; left -= kSlotsAhead, from += kSlotsAhead * elements)
        add_slots(from, elements, kSlotsAhead, sum);
      add_slots(from, elements, static_cast<int32_t>(left), sum);
    } else {
      PUMICE_ROLLED
      for (int64_t i = 0; i < slots; ++i)
        add_slots(from + block_of_chunk(chunks, first + i, blocks) * elements, elements, 1, sum);
    }
    store_chunk<kOutput, kCount * element_bytes(kOutput)>(
        arguments.result, first_row * arguments.columns + at, sum, kCount);
  }
}

template <ElementType kOutput> PUMICE_DEVICE void sum_slots(const SumSlotsArguments& arguments) {
  if (arguments.pairs.pairs.poisoned()) {
    const int64_t elements = int64_t{arguments.in_channels} * arguments.columns;
    const int64_t first =
        (int64_t{block_index_y()} * arguments.result_channels + arguments.first_channel) *
        arguments.columns;
    const float nan[1] = {bits_to_float(0x7fffffffu)};
    for (int64_t at = global_thread_index(); at < elements;
         at += int64_t{grid_size()} * block_size())
      store_chunk<kOutput, element_bytes(kOutput)>(arguments.result, first + at, nan, 1);
    return;
  }
  const OffsetTable table(launch_shared<unsigned char>(), arguments.pairs.offsets);
  table.fill(arguments.pairs, arguments.tile_pairs);
  block_sync();
  if (arguments.columns % 4 == 0) {
    sum_slot_chunks<kOutput, 4>(arguments, table);
  } else {
    sum_slot_chunks<kOutput, 1>(arguments, table);
  }
}

}   // namespace pumice
