// The weight gradient of a depthwise convolution: for every offset and channel a sum over pairs.
//
//    threads of a block        pairs p, p + lanes, …           shared memory
//   ┌ lane 0: channels 0…3 │ 4…7 │ … ┐   x · dy in fp32   ┌ one sum a lane ┐  added in the order
//   │ lane 1: channels 0…3 │ 4…7 │ … │  ───────────────►  │ and channel    │  of lanes → slot
//   └ …                              ┘                    └────────────────┘
#pragma once

#include <pumice/shared/depthwise_arguments.h>
#include <pumice/skeleton/chunk_walk.h>
#include <pumice/thread/global_access.h>

namespace pumice {

template <ElementType kType, int32_t kCount>
PUMICE_DEVICE void depthwise_gradient_chunks(const DepthwiseGradientArguments& arguments,
                                             const OffsetTable& table, float* sums) {
  constexpr int32_t kAlign = kCount * element_bytes(kType);
  const int32_t first_channel = block_index_y() * kDepthwiseThreads * kCount;
  const int32_t left = arguments.channels - first_channel;
  const int32_t here = left < kDepthwiseThreads * kCount ? left : kDepthwiseThreads * kCount;
  const int32_t chunks = here / kCount;
  const int32_t lanes = kDepthwiseThreads / chunks;
  const int32_t lane = thread_index() / chunks, chunk = thread_index() % chunks;
  const int32_t channel = first_channel + chunk * kCount;
  for (ChunkWalk walk(table, block_index(), grid_size()); !walk.done();) {
    const int32_t offset = walk.offset();
    const int64_t begin = walk.first_pair(kDepthwisePairs);
    int64_t end = begin + int64_t{walk.left_of_offset()} * kDepthwisePairs;
    end = end < walk.end_of_pairs() ? end : walk.end_of_pairs();
    float sum[kCount];
    fill(sum, 0.0f);
    PUMICE_ROLLED
    for (int64_t pair = begin + lane; lane < lanes && pair < end; pair += lanes) {
      float x[kCount], dy[kCount];
      load_chunk<kType, kAlign>(arguments.input,
                                int64_t{arguments.pairs.in[pair]} * arguments.channels + channel, x,
                                kCount);
      load_chunk<kType, kAlign>(arguments.grad,
                                int64_t{arguments.pairs.out[pair]} * arguments.channels + channel,
                                dy, kCount);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += x[i] * dy[i];
    }
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      sums[thread_index() * kCount + i] = sum[i];
    block_sync();
    float* const slot = arguments.slots + int64_t{block_index() + offset} * arguments.channels;
    for (int32_t c = thread_index(); c < here; c += kDepthwiseThreads) {
      float total = 0.0f;
      for (int32_t l = 0; l < lanes; ++l)
        total += sums[l * here + c];
      slot[first_channel + c] = total;
    }
    block_sync();
    for (int32_t c = walk.left_of_offset(); c > 0; --c)
      walk.advance();
  }
}

template <ElementType kType>
PUMICE_DEVICE void depthwise_gradient(const DepthwiseGradientArguments& arguments) {
  if (arguments.pairs.pairs.poisoned()) return;   // sum_slots says so
  unsigned char* const shared = launch_shared<unsigned char>();
  const OffsetTable table(shared + kDepthwiseThreads * 4 * 4, arguments.pairs.offsets);
  table.fill(arguments.pairs, kDepthwisePairs);
  block_sync();
  auto* const sums = reinterpret_cast<float*>(shared);
  if (arguments.channels % 4 == 0) {
    depthwise_gradient_chunks<kType, 4>(arguments, table, sums);
  } else {
    depthwise_gradient_chunks<kType, 1>(arguments, table, sums);
  }
}

}   // namespace pumice
