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

/// The copies of 16 bytes that begin at one channel, of any row. What depends on the channel is
/// settled once: for each row there is a multiply-add and the copy. Four instructions of the warp
/// for 16 bytes, where asking again for each row took 40 and kept the copies from filling the pipe.
template <ChannelSpan kSpan> class RowChunk {
  static constexpr int32_t kBytes = element_bytes(kSpan.type);
  static constexpr int32_t kStep = kSpan.copy_bytes / kBytes;   // channels of one copy
  static constexpr int32_t kCopies = kChunkBytes / kSpan.copy_bytes;
  static constexpr int32_t kSecond = kSpan.channels - kSpan.first;
  static constexpr int32_t kSources = kSecond > 0 ? kCopies : 1;   // the second may begin anywhere

 public:
  PUMICE_DEVICE RowChunk(const void* first, const void* second, int32_t channel, int32_t group)
      : channel_(channel) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kSources; ++i) {
      const int32_t c = channel + i * kStep;
      const bool in_second = kSecond > 0 && c >= kSpan.first;
      const int32_t column =
          in_second ? c - kSpan.first : c + (kSpan.groups > 1 ? group * kSpan.channels : 0);
      pitch_[i] = (in_second ? kSecond : kSpan.first * kSpan.groups) * kBytes;
      base_[i] = settled(reinterpret_cast<int64_t>(in_second ? second : first) + column * kBytes);
    }
  }

  /// Starts the copy to shared address `to`; zeros for row −1 and past the last channel, without a
  /// read.
  PUMICE_DEVICE void copy(uint32_t to, int32_t row) const {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCopies; ++i) {
      const int32_t source = kSources > 1 ? i : 0;
      const int64_t in_chunk = kSources > 1 ? 0 : i * kSpan.copy_bytes;
      const auto* from =
          reinterpret_cast<const void*>(base_[source] + in_chunk + int64_t{row} * pitch_[source]);
      const int32_t there = !kSpan.padded || channel_ + i * kStep < kSpan.channels ? row : -1;
      const uint32_t target = to + static_cast<uint32_t>(i * kSpan.copy_bytes);
      if constexpr (kSpan.copy_bytes == 2) {
        copy_two_bytes_of_row(target, from, there);
      } else {
        copy_async_of_row<kSpan.copy_bytes>(target, from, there);
      }
    }
  }

 private:
  int32_t channel_;
  int32_t pitch_[kSources];
  int64_t base_[kSources];
};

}   // namespace pumice
