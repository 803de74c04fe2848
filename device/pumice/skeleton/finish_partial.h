// The last step of a convolution whose offsets are split: partial results in fp32 are added in the
// order of their slots.
#pragma once

#include <pumice/skeleton/finish_parts.h>

namespace pumice {

struct PartsInSlots {
  template <int32_t kCount>
  PUMICE_DEVICE static void add(float (&sum)[kCount], const FinishArguments& arguments, int64_t,
                                int32_t, int64_t at) {
    const int64_t slot = arguments.out_rows.capacity * arguments.channels;
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
  }
};

template <ElementType kOutput> PUMICE_DEVICE void finish_partial(const FinishArguments& arguments) {
  finish_parts<kOutput, PartsInSlots>(arguments);
}

}   // namespace pumice
