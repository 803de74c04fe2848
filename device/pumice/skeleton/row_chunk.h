// Copying sixteen bytes of a feature row into shared memory, whatever the row's alignment.
#pragma once

#include <pumice/shared/tile_spec.h>
#include <pumice/thread/copy_async.h>

namespace pumice {

/// The channels of one input. With several groups, the rows of all of them lie side by side.
struct ChannelSpan {
  ElementType type = ElementType::f16;
  int32_t channels = 0;   // of a group, both tensors together
  int32_t first = 0;      // of the first tensor; the rest are in the second
  int32_t groups = 1;
  int32_t copy_bytes = 16;   // rows and tensors start at multiples of it
  bool padded = false;       // asked for channels past the last one, which are zeros
};

/// Where `channel` of `row` is.
template <ChannelSpan kSpan>
PUMICE_DEVICE const void* row_channel(const void* first, const void* second, int32_t row,
                                      int32_t channel, int32_t group) {
  constexpr int32_t kBytes = element_bytes(kSpan.type);
  constexpr int32_t kSecond = kSpan.channels - kSpan.first;
  const bool in_second = kSecond > 0 && channel >= kSpan.first;
  const char* base = static_cast<const char*>(in_second ? second : first);
  const int32_t pitch = (in_second ? kSecond : kSpan.first * kSpan.groups) * kBytes;
  const int32_t column =
      in_second ? channel - kSpan.first : channel + (kSpan.groups > 1 ? group * kSpan.channels : 0);
  return base + int64_t{row} * pitch + column * kBytes;
}

/// Starts the copy of 16 bytes from `channel` of `row` on; zeros for row −1 and past the last
/// channel, without a read.
template <ChannelSpan kSpan>
PUMICE_DEVICE void copy_row_chunk(uint32_t to, const void* first, const void* second, int32_t row,
                                  int32_t channel, int32_t group) {
  constexpr int32_t kBytes = element_bytes(kSpan.type);
  constexpr int32_t kStep = kSpan.copy_bytes / kBytes;   // channels of one copy
  PUMICE_UNROLL
  for (int32_t i = 0; i < kChunkBytes / kBytes; i += kStep) {
    const int32_t c = channel + i;
    const bool there = row >= 0 && (!kSpan.padded || c < kSpan.channels);
    const void* from = there ? row_channel<kSpan>(first, second, row, c, group) : first;
    const uint32_t target = to + static_cast<uint32_t>(i * kBytes);
    if constexpr (kSpan.copy_bytes == 2) {
      copy_two_bytes(target, from, there);
    } else {
      copy_async<kSpan.copy_bytes>(target, from, there);
    }
  }
}

}   // namespace pumice
