// activation(sum · scale + shift + residual) on a few neighbouring channels of a row.
#pragma once

#include <pumice/shared/tile_arguments.h>
#include <pumice/thread/activation.h>
#include <pumice/thread/global_access.h>

namespace pumice {

/// `count` values of an array that nobody writes meanwhile, or `neutral` for all when it is null.
template <ElementType kType, int32_t kAlign, int32_t kCount>
PUMICE_DEVICE void load_or_fill(float (&value)[kCount], const void* data, int64_t element,
                                int32_t count, float neutral) {
  fill(value, neutral);
  if (data != nullptr) load_chunk<kType, kAlign, true>(data, element, value, count);
}

/// Scale and shift of a chunk of channels.
template <int32_t kAlign, int32_t kCount> struct ChannelEpilogue {
  float scale[kCount] = {};
  float shift[kCount] = {};

  PUMICE_DEVICE void load(const EpilogueArguments& epilogue, int32_t channel, int32_t count) {
    load_or_fill<ElementType::f32, kAlign>(scale, epilogue.scale, channel, count, 1.0f);
    load_or_fill<ElementType::f32, kAlign>(shift, epilogue.shift, channel, count, 0.0f);
  }
};

/// One chunk in place. `below` is the activation's negative_slope.
template <ActivationSet kSet, int32_t kAlign, int32_t kCount>
PUMICE_DEVICE void apply_epilogue(float (&value)[kCount],
                                  const ChannelEpilogue<kAlign, kCount>& channels,
                                  const float (&residual)[kCount], Activation activation,
                                  float below) {
  PUMICE_UNROLL
  for (int32_t i = 0; i < kCount; ++i) {
    const float x = value[i] * channels.scale[i] + channels.shift[i] + residual[i];
    value[i] = activate<kSet>(x, activation, below);
  }
}

}   // namespace pumice
