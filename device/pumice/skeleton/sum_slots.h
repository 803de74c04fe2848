// Adds the slots of a weight gradient, offset by offset and in the order of the blocks that filled
// them: the same bits every time.
#pragma once

#include <pumice/skeleton/chunk_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// The slots of offset `offset` are those of blocks [first, last].
struct SlotRange {
  int64_t first = 0;
  int64_t last = -1;
};

/// Which blocks have chunks of an offset.
PUMICE_DEVICE SlotRange slots_of_offset(const OffsetTable& table, int32_t offset, int64_t blocks) {
  const int64_t begin = table.chunk_begin(offset), end = table.chunk_begin(offset + 1);
  const int64_t chunks = table.chunks();
  if (begin == end) return {};
  SlotRange range{begin * blocks / chunks, (end - 1) * blocks / chunks};
  while (chunk_share(chunks, range.first + 1, blocks) <= begin)
    ++range.first;
  while (range.last + 1 < blocks && chunk_share(chunks, range.last + 1, blocks) < end)
    ++range.last;
  return range;
}

template <ElementType kOutput, int32_t kCount>
PUMICE_DEVICE void sum_slot_chunks(const SumSlotsArguments& arguments, const OffsetTable& table) {
  const int32_t offset = block_index_y();
  const int64_t elements = int64_t{arguments.in_channels} * arguments.columns;
  const SlotRange range = slots_of_offset(table, offset, arguments.share_blocks);
  const int64_t first_row = int64_t{offset} * arguments.result_channels + arguments.first_channel;
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() * kCount; at < elements;
       at += int64_t{grid_size()} * block_size() * kCount) {
    float sum[kCount];
    fill(sum, 0.0f);
    PUMICE_ROLLED
    for (int64_t block = range.first; block <= range.last; ++block) {
      if (chunk_share(table.chunks(), block, arguments.share_blocks) ==
          chunk_share(table.chunks(), block + 1, arguments.share_blocks))
        continue;   // a share without chunks fills no slot
      float slot[kCount];
      load_chunk<ElementType::f32, kCount * 4>(arguments.slots, (block + offset) * elements + at,
                                               slot, kCount);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += slot[i];
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
