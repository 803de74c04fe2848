// Weight gradients with all warps copying and multiplying (sm_80 and later): mma.sync with
// transposing loads for half types, with plain loads for tf32, and fp32 multiply-adds.
//
//      stage: tile_pairs rows of x and of dy            a warp's tile of dW
//   ┌ x  ─ pair 0 ─┐  ┌ dy ─ pair 0 ─┐              ┌ in × out channels ┐
//   │      pair 1  │  │      pair 1  │   xᵀ · dy    │ sums in fp32      │ → flushed where the
//   └──────  …  ───┘  └──────  …  ───┘  ────────►   └───────────────────┘   offset ends
#pragma once

#include <pumice/skeleton/gradient_sink.h>
#include <pumice/skeleton/pair_gather.h>
#include <pumice/thread/shared_address.h>
#include <pumice/warp/matrix.h>

namespace pumice {

/// The channels of one warp.
template <GradientSpec S> struct GradientWarp {
  static constexpr int32_t kRows = S.tile_in / S.in_warps;
  static constexpr int32_t kColumns = S.tile_out / S.out_warps;
  using Input = GradientOperand<S, false>;
  using Grad = GradientOperand<S, true>;
};

/// Sums in the fragments of matrix instructions.
template <GradientSpec S> class MatrixGradient : GradientWarp<S> {
  using Warp = GradientWarp<S>;
  using Warp::kColumns, Warp::kRows, typename Warp::Input, typename Warp::Grad;
  static constexpr bool kHalf = element_bytes(S.operand) == 2;

 public:
  PUMICE_DEVICE explicit MatrixGradient(int32_t warp)
      : row_(warp % S.in_warps * kRows), column_(warp / S.in_warps * kColumns) {
    clear();
  }

  PUMICE_DEVICE void clear() {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kColumns / 8; ++j)
        fill(sums_[i][j], 0.0f);
    }
  }

  PUMICE_DEVICE void multiply_stage(const unsigned char* stage) {
    constexpr int32_t kStep = kHalf ? 16 : 8;   // pairs of one instruction
    PUMICE_UNROLL
    for (int32_t pair = 0; pair < S.tile_pairs; pair += kStep) {
      uint32_t a[kRows / 16][4], b[kColumns / 8][2];
      if constexpr (kHalf) {
        load_transposed(a, b, shared_address(stage), pair);
      } else {
        load_plain(a, b, stage, pair);
      }
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows / 16; ++i) {
        PUMICE_UNROLL
        for (int32_t j = 0; j < kColumns / 8; ++j)
          multiply<S.operand>(sums_[i][j], a[i], b[j][0], b[j][1]);
      }
    }
  }

  PUMICE_DEVICE void flush(const GradientSink<S>& sink) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i)
      sink.template put_fragment<kColumns>(sums_[i], row_ + i * 16, column_);
    clear();
  }

 private:
  /// Shared address of the 16-byte chunk that holds `channel` of a pair's row.
  template <class Operand>
  PUMICE_DEVICE static uint32_t chunk_at(uint32_t stage, int32_t pair, int32_t channel) {
    const int32_t chunk = channel / 8;
    return stage + Operand::at(pair, chunk / Operand::kSubChunks, chunk % Operand::kSubChunks);
  }

  PUMICE_DEVICE void load_transposed(uint32_t (&a)[kRows / 16][4], uint32_t (&b)[kColumns / 8][2],
                                     uint32_t stage, int32_t pair) const {
    const int32_t lane = lane_index();
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i) {
      // Matrices: channels 0…7 and 8…15 of pairs 0…7, then of pairs 8…15.
      const int32_t p = pair + lane % 8 + lane / 16 * 8;
      load_matrices_transposed(a[i], chunk_at<Input>(stage, p, row_ + i * 16 + lane / 8 % 2 * 8));
    }
    PUMICE_UNROLL
    for (int32_t j = 0; j < kColumns / 8; j += 2) {
      // Matrices: pairs 0…7 and 8…15 of channels 0…7, then of channels 8…15.
      uint32_t two[4];
      const int32_t p = pair + lane % 16;
      load_matrices_transposed(two, chunk_at<Grad>(stage, p, column_ + j * 8 + lane / 16 * 8));
      b[j][0] = two[0];
      b[j][1] = two[1];
      b[j + 1][0] = two[2];
      b[j + 1][1] = two[3];
    }
  }

  PUMICE_DEVICE void load_plain(uint32_t (&a)[kRows / 16][4], uint32_t (&b)[kColumns / 8][2],
                                const unsigned char* stage, int32_t pair) const {
    const int32_t p = pair + lane_index() % 4, channel = lane_index() / 4;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 16; ++i) {
      PUMICE_UNROLL
      for (int32_t r = 0; r < 4; ++r)
        a[i][r] = rounded_at<Input>(stage, p + r / 2 * 4, row_ + i * 16 + r % 2 * 8 + channel);
    }
    PUMICE_UNROLL
    for (int32_t j = 0; j < kColumns / 8; ++j) {
      PUMICE_UNROLL
      for (int32_t r = 0; r < 2; ++r)
        b[j][r] = rounded_at<Grad>(stage, p + r * 4, column_ + j * 8 + channel);
    }
  }

  template <class Operand>
  PUMICE_DEVICE static uint32_t rounded_at(const unsigned char* stage, int32_t pair,
                                           int32_t channel) {
    const auto* row = reinterpret_cast<const uint32_t*>(stage + Operand::at(pair, 0, 0));
    return round_to_tf32(row[channel]);
  }

  int32_t row_;
  int32_t column_;
  float sums_[kRows / 16][kColumns / 8][4];
};

/// Sums of fp32 multiply-adds: a lane has 4 of every 16 input channels and 4 of every 32 output
/// channels.
template <GradientSpec S> class LaneGradient : GradientWarp<S> {
  using Warp = GradientWarp<S>;
  using Warp::kColumns, Warp::kRows, typename Warp::Input, typename Warp::Grad;

 public:
  PUMICE_DEVICE explicit LaneGradient(int32_t warp)
      : row_(warp % S.in_warps * kRows + lane_index() / 8 * 4),
        column_(warp / S.in_warps * kColumns + lane_index() % 8 * 4) {
    clear();
  }

  PUMICE_DEVICE void clear() {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 4; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kColumns / 32; ++j)
        fill(sums_[i][j], 0.0f);
    }
  }

  PUMICE_DEVICE void multiply_stage(const unsigned char* stage) {
    PUMICE_ROLLED
    for (int32_t pair = 0; pair < S.tile_pairs; ++pair) {
      const auto* x = reinterpret_cast<const float*>(stage + Input::at(pair, 0, 0)) + row_;
      const auto* dy = reinterpret_cast<const float*>(stage + Grad::at(pair, 0, 0)) + column_;
      float a[kRows / 16][4], b[kColumns / 32][4];
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows / 16; ++i)
        load_four(a[i], x + i * 16);
      PUMICE_UNROLL
      for (int32_t j = 0; j < kColumns / 32; ++j)
        load_four(b[j], dy + j * 32);
      PUMICE_UNROLL
      for (int32_t i = 0; i < kRows / 4; ++i) {
        PUMICE_UNROLL
        for (int32_t j = 0; j < kColumns / 32; ++j) {
          PUMICE_UNROLL
          for (int32_t n = 0; n < 4; ++n)
            sums_[i][j][n] += a[i / 4][i % 4] * b[j][n];
        }
      }
    }
  }

  PUMICE_DEVICE void flush(const GradientSink<S>& sink) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kRows / 4; ++i) {
      PUMICE_UNROLL
      for (int32_t j = 0; j < kColumns / 32; ++j)
        sink.put(row_ + i / 4 * 16 + i % 4, column_ + j * 32, sums_[i][j]);
    }
    clear();
  }

 private:
  int32_t row_;
  int32_t column_;
  float sums_[kRows / 4][kColumns / 32][4];
};

template <GradientSpec S, template <GradientSpec> class Sums>
PUMICE_DEVICE void gradient_with(const GradientArguments& arguments) {
  static_assert(is_valid(S));
  if (poisoned<S>(arguments)) return;
  unsigned char* const shared = launch_shared<unsigned char>();
  const OffsetTable table(shared + S.stages * stage_bytes(S), arguments.pairs.offsets);
  table.fill(arguments.pairs, S.tile_pairs);
  block_sync();

  const GradientTile<S> tile = gradient_tile<S>();
  const int32_t warp = warp_shuffle(warp_index(), 0);
  ChunkWalk copies(table, block_index(), grid_size());
  ChunkWalk walk = copies;
  const int32_t total = copies.left();
  PairGather<S, multiplying_warps(S)> gather(arguments, copies, warp, tile.in_tile, tile.out_tile,
                                             tile.group);
  GradientSink<S> sink(arguments, tile.in_tile, tile.out_tile, tile.group);
  Sums<S> sums(warp);
  const auto stage_start = [](int32_t stage) { return stage % S.stages * stage_bytes(S); };
  constexpr int32_t kAhead = S.stages - 1;
  PUMICE_ROLLED
  for (int32_t c = 0; c < total + kAhead; ++c) {   // copies chunk c, multiplies chunk c − kAhead
    if (c >= kAhead) {
      copy_wait<S.stages - 2>();
      block_sync();
    }
    if (c < total) {
      copies.advance();
      gather.enter(copies);
      gather.copy(shared_address(shared) + stage_start(c));
    }
    copy_commit();
    if (c + 1 == total) launch_next();   // all copies are under way
    if (c < kAhead) continue;
    sums.multiply_stage(shared + stage_start(c - kAhead));
    if (walk.left_of_offset() == 1) {
      sink.begin(walk.offset());
      sums.flush(sink);
    }
    walk.advance();
  }
}

template <GradientSpec S> PUMICE_DEVICE void gradient_mma_sync(const GradientArguments& arguments) {
  static_assert(S.instruction == Instruction::mma_sync);
  gradient_with<S, MatrixGradient>(arguments);
}

template <GradientSpec S> PUMICE_DEVICE void gradient_fma(const GradientArguments& arguments) {
  static_assert(S.instruction == Instruction::fma);
  gradient_with<S, LaneGradient>(arguments);
}

}   // namespace pumice
