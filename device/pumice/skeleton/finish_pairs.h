// The last step of a fetch-on-demand convolution whose products lie in rows of their own: the rows
// of each output are added in the order of their offsets, the same bits every time, then the
// epilogue. Bound by memory, so activations are not compiled in.
//
//    pair_of[row]      products                      output row
//    ┌ -1  4 -1  9 ┐   4: ▬▬▬▬▬▬ ─┐
//    └─────────────┘   9: ▬▬▬▬▬▬ ─┴─► fp32 sums ─► epilogue ─► ▬▬▬▬▬▬
#pragma once

#include <pumice/skeleton/apply_epilogue.h>
#include <pumice/skeleton/poison.h>

namespace pumice {

/// kCount neighbouring channels, as many as a thread takes at a time.
template <ElementType kOutput, int32_t kCount>
PUMICE_DEVICE void finish_pair_chunks(const FinishPairsArguments& arguments) {
  const EpilogueArguments& epilogue = arguments.epilogue;
  const float below = negative_slope(epilogue.activation, epilogue.slope);
  const int64_t elements = arguments.out_rows.rows() * arguments.channels;
  const int64_t step = int64_t{grid_size()} * block_size() * kCount;
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() * kCount; at < elements; at += step) {
    const int64_t row = at / arguments.channels;
    const int32_t channel = static_cast<int32_t>(at - row * arguments.channels);
    const int32_t* const pair_of = arguments.pair_of + row * arguments.offsets;
    float sum[kCount];
    fill(sum, 0.0f);
    PUMICE_UNROLL_BY(4)
    for (int32_t k = 0; k < arguments.offsets; ++k) {
      const int32_t pair = pair_of[k];
      if (pair < 0) continue;
      float product[kCount];
      load_chunk<ElementType::f32, kCount * 4, true>(
          arguments.product, int64_t{pair} * arguments.channels + channel, product, kCount);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += product[i];
    }
    ChannelEpilogue<kCount * 4, kCount> channels;
    channels.load(epilogue, channel, kCount);
    float residual[kCount];
    load_or_fill<kOutput, kCount * element_bytes(kOutput)>(residual, epilogue.residual, at, kCount,
                                                           0.0f);
    apply_epilogue<ActivationSet::all>(sum, channels, residual, epilogue.activation, below);
    store_chunk<kOutput, kCount * element_bytes(kOutput)>(arguments.output, at, sum, kCount);
  }
}

template <ElementType kOutput>
PUMICE_DEVICE void finish_pairs(const FinishPairsArguments& arguments) {
  if (arguments.out_rows.poisoned() || arguments.tiles.poisoned()) {
    fill_with_nan<kOutput>(arguments.output, arguments.out_rows.capacity * arguments.channels);
  } else if (arguments.channels % 4 == 0) {
    finish_pair_chunks<kOutput, 4>(arguments);
  } else {
    finish_pair_chunks<kOutput, 1>(arguments);
  }
}

}   // namespace pumice
