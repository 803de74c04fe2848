// Where the sums of a weight gradient go when an offset ends: added to the result, or to a slot.
#pragma once

#include <pumice/shared/gradient_spec.h>
#include <pumice/thread/global_access.h>

namespace pumice {

template <GradientSpec S> class GradientSink {
  static constexpr int32_t kPitch = S.groups * S.out_channels;
  static constexpr int32_t kAlign = widest_copy(int64_t{S.out_channels} * 4);

 public:
  PUMICE_DEVICE GradientSink(const GradientArguments& arguments, int32_t in_tile, int32_t out_tile,
                             int32_t group)
      : arguments_(arguments),
        first_in_(in_tile * S.tile_in),
        first_out_(out_tile * S.tile_out),
        group_(group) {}

  /// Of the dW of `offset` from now on.
  PUMICE_DEVICE void begin(int32_t offset) {
    const int64_t row = S.write == Write::add ? int64_t{offset} * arguments_.result_channels +
                                                    arguments_.first_channel
                                              : int64_t{block_index() + offset} * S.in_channels;
    base_ = arguments_.result + row * kPitch + group_ * S.out_channels;
  }

  /// Four neighbouring columns of a row, both counted in the tile.
  PUMICE_DEVICE void put(int32_t row, int32_t column, const float (&value)[4]) const {
    const int32_t in = first_in_ + row, out = first_out_ + column;
    if (in >= S.in_channels || out >= S.out_channels) return;
    float* to = base_ + int64_t{in} * kPitch + out;
    const int32_t count = S.out_channels - out < 4 ? S.out_channels - out : 4;
    if constexpr (S.write == Write::add) {
      add_chunk<kAlign>(to, value, count);
    } else {
      store_chunk<ElementType::f32, kAlign>(to, 0, value, count);
    }
  }

  /// Accumulators of 16 rows × kColumns from (row, column) on, in the layout of warp/matrix.h. Two
  /// lanes of a quad exchange halves of two 8-column blocks, so that each has four columns side by
  /// side.
  template <int32_t kColumns>
  PUMICE_DEVICE void put_fragment(const float (&sum)[kColumns / 8][4], int32_t row,
                                  int32_t column) const {
    const int32_t lane = lane_index();
    const bool odd = lane % 2 != 0;
    PUMICE_UNROLL
    for (int32_t j = 0; j < kColumns / 8; j += 2) {
      constexpr bool kSingle = kColumns / 8 % 2 != 0;   // the last block has no partner
      const bool alone = kSingle && j + 1 == kColumns / 8;
      const float(&first)[4] = sum[j];
      const float(&second)[4] = sum[alone ? j : j + 1];
      PUMICE_UNROLL
      for (int32_t half = 0; half < 2; ++half) {   // rows l / 4, then l / 4 + 8
        // Even lanes collect of the first block, odd ones of the second.
        const float give0 = odd ? first[2 * half] : second[2 * half];
        const float give1 = odd ? first[2 * half + 1] : second[2 * half + 1];
        const float got0 = warp_shuffle_xor(give0, 1), got1 = warp_shuffle_xor(give1, 1);
        const float value[4] = {odd ? got0 : first[2 * half], odd ? got1 : first[2 * half + 1],
                                odd ? second[2 * half] : got0, odd ? second[2 * half + 1] : got1};
        if (alone && odd) continue;
        put(row + lane / 4 + 8 * half, column + (j + (odd ? 1 : 0)) * 8 + lane % 4 / 2 * 4, value);
      }
    }
  }

 private:
  const GradientArguments& arguments_;
  int32_t first_in_;
  int32_t first_out_;
  int32_t group_;
  float* base_ = nullptr;
};

/// What a thread block works on.
template <GradientSpec S> struct GradientTile {
  int32_t in_tile;
  int32_t out_tile;
  int32_t group;
};

template <GradientSpec S> PUMICE_DEVICE GradientTile<S> gradient_tile() {
  const int32_t tile = block_index_y();
  return {tile / out_tiles(S) % in_tiles(S), tile % out_tiles(S),
          tile / out_tiles(S) / in_tiles(S)};
}

/// Whether the pairs are poison; a result that is added to becomes NaN, slots are left to whoever
/// sums them.
template <GradientSpec S> PUMICE_DEVICE bool poisoned(const GradientArguments& arguments) {
  if (!arguments.pairs.pairs.poisoned()) return false;
  if constexpr (S.write == Write::add) {
    constexpr int32_t kColumns = S.groups * S.out_channels;
    const int64_t elements = int64_t{arguments.pairs.offsets} * S.in_channels * kColumns;
    const int64_t step = int64_t{grid_size()} * block_size();
    PUMICE_ROLLED
    for (int64_t i = global_thread_index(); i < elements; i += step) {
      const int64_t row = i / kColumns;
      const int64_t to = row / S.in_channels * arguments.result_channels + arguments.first_channel +
                         row % S.in_channels;
      arguments.result[to * kColumns + i % kColumns] = bits_to_float(0x7fffffffu);
    }
  }
  return true;
}

}   // namespace pumice
