// The last step of a fetch-on-demand convolution whose products lie in rows of their own: the rows
// of each output are added in the order of their offsets, the same bits every time.
//
//    pair_of[row]      products                      output row
//    ┌ -1  4 -1  9 ┐   4: ▬▬▬▬▬▬ ─┐
//    └─────────────┘   9: ▬▬▬▬▬▬ ─┴─► fp32 sums ─► epilogue ─► ▬▬▬▬▬▬
#pragma once

#include <pumice/skeleton/finish_parts.h>

namespace pumice {

struct PartsOfPairs {
  template <int32_t kCount>
  PUMICE_DEVICE static void add(float (&sum)[kCount], const FinishPairsArguments& arguments,
                                int64_t row, int32_t channel, int64_t) {
    const int32_t* const pair_of = arguments.pair_of + row * arguments.offsets;
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
  }
};

template <ElementType kOutput>
PUMICE_DEVICE void finish_pairs(const FinishPairsArguments& arguments) {
  finish_parts<kOutput, PartsOfPairs>(arguments);
}

}   // namespace pumice
