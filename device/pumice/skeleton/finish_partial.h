// The last step of a convolution whose offsets are split: partial results in fp32 are added in the
// order of their slots, then the epilogue. Bound by memory, so activations are not compiled in.
#pragma once

#include <pumice/skeleton/apply_epilogue.h>
#include <pumice/skeleton/poison.h>

namespace pumice {

/// kCount neighbouring channels, as many as a thread takes at a time.
template <ElementType kOutput, int32_t kCount>
PUMICE_DEVICE void finish_chunks(const FinishArguments& arguments) {
  const EpilogueArguments& epilogue = arguments.epilogue;
  const float below = negative_slope(epilogue.activation, epilogue.slope);
  const int64_t elements = arguments.out_rows.rows() * arguments.channels;
  const int64_t slot = arguments.out_rows.capacity * arguments.channels;
  const int64_t step = int64_t{grid_size()} * block_size() * kCount;
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() * kCount; at < elements; at += step) {
    float sum[kCount];
    fill(sum, 0.0f);
    PUMICE_ROLLED
    for (int32_t s = 0; s < arguments.slots; ++s) {
      float* const partial = arguments.partial + s * slot;
      float part[kCount];
      load_chunk<ElementType::f32, kCount * 4>(partial, at, part, kCount);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        sum[i] += part[i];
      if (arguments.clear) {
        float zero[kCount];
        fill(zero, 0.0f);
        store_chunk<ElementType::f32, kCount * 4>(partial, at, zero, kCount);
      }
    }
    const int32_t channel = static_cast<int32_t>(at % arguments.channels);
    ChannelEpilogue<kCount * 4, kCount> channels;
    channels.load(epilogue, channel, kCount);
    float residual[kCount];
    load_or_fill<kOutput, kCount * element_bytes(kOutput)>(residual, epilogue.residual, at, kCount,
                                                           0.0f);
    apply_epilogue<ActivationSet::all>(sum, channels, residual, epilogue.activation, below);
    store_chunk<kOutput, kCount * element_bytes(kOutput)>(arguments.output, at, sum, kCount);
  }
}

template <ElementType kOutput> PUMICE_DEVICE void finish_partial(const FinishArguments& arguments) {
  if (arguments.out_rows.poisoned() || arguments.tiles.poisoned()) {
    fill_with_nan<kOutput>(arguments.output, arguments.out_rows.capacity * arguments.channels);
  } else if (arguments.channels % 4 == 0) {
    finish_chunks<kOutput, 4>(arguments);
  } else {
    finish_chunks<kOutput, 1>(arguments);
  }
}

}   // namespace pumice
