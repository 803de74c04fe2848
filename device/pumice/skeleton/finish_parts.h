// The last step of a convolution whose sums lie in memory in parts: the parts of each output are
// added up in fp32, then the epilogue. Bound by memory, so activations are not compiled in.
#pragma once

#include <pumice/skeleton/apply_epilogue.h>
#include <pumice/skeleton/poison.h>

namespace pumice {

/// kCount neighbouring channels, as many as a thread takes at a time. Parts::add(sum, arguments,
/// row, channel, at) adds those of one chunk, in a fixed order; `at` is its place in the output.
template <ElementType kOutput, int32_t kCount, class Parts, class Arguments>
PUMICE_DEVICE void finish_chunks(const Arguments& arguments) {
  const EpilogueArguments& epilogue = arguments.epilogue;
  const float below = negative_slope(epilogue.activation, epilogue.slope);
  const int64_t elements = arguments.out_rows.rows() * arguments.channels;
  const int64_t step = int64_t{grid_size()} * block_size() * kCount;
  PUMICE_ROLLED
  for (int64_t at = global_thread_index() * kCount; at < elements; at += step) {
    const int64_t row = at / arguments.channels;
    const int32_t channel = static_cast<int32_t>(at - row * arguments.channels);
    float sum[kCount];
    fill(sum, 0.0f);
    Parts::add(sum, arguments, row, channel, at);
    ChannelEpilogue<kCount * 4, kCount> channels;
    channels.load(epilogue, channel, kCount);
    float residual[kCount];
    load_or_fill<kOutput, kCount * element_bytes(kOutput)>(residual, epilogue.residual, at, kCount,
                                                           0.0f);
    apply_epilogue<ActivationSet::all>(sum, channels, residual, epilogue.activation, below);
    store_chunk<kOutput, kCount * element_bytes(kOutput)>(arguments.output, at, sum, kCount);
  }
}

template <ElementType kOutput, class Parts, class Arguments>
PUMICE_DEVICE void finish_parts(const Arguments& arguments) {
  if (arguments.out_rows.poisoned() || arguments.tiles.poisoned()) {
    fill_with_nan<kOutput>(arguments.output, arguments.out_rows.capacity * arguments.channels);
  } else if (arguments.channels % 4 == 0) {
    finish_chunks<kOutput, 4, Parts>(arguments);
  } else {
    finish_chunks<kOutput, 1, Parts>(arguments);
  }
}

}   // namespace pumice
