// Pooling on the tiles of convolutions: a thread has a few channels of one output row and goes
// through the tile's entries, which come in ascending order of offset, as the CPU goes through
// them.
//
//    entry e0: in_row[p] ─► x chunk ─┐
//    entry e1: in_row[p] ─► x chunk ─┼─► sum, or largest and where it came from ─► row
//    …                               ┘
//
// Gradients are the same on the transposed map, so nothing is added atomically.
#pragma once

#include <pumice/ops/column_walk.h>
#include <pumice/ops/pool_arguments.h>

namespace pumice {

/// Calls body(input row) for every neighbour of a position of a tile.
template <class Body>
PUMICE_DEVICE void for_neighbours(const TileMapRef& map, const TileRun& run, int32_t position,
                                  const Body& body) {
  const auto* const entries = reinterpret_cast<const uint32_t*>(map.entry);
  PUMICE_ROLLED
  for (int32_t e = run.entry_begin; e < run.entry_end; ++e) {
    const uint32_t entry = entries[e];   // offset below, blocks above
    if ((entry >> (16 + position / kBlockRows) & 1) == 0) continue;
    const int32_t row = map.in_row[int64_t{e} * map.tile_rows + position];
    if (row >= 0) body(row);
  }
}

/// One chunk of channels of one output row.
template <class Access> class PoolChunk {
  static constexpr int32_t kCount = Access::kCount;

 public:
  PUMICE_DEVICE PoolChunk(const PoolArguments& a, int32_t row, int32_t channel)
      : a_(a), row_(row), channel_(channel) {
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      value_[i] = 0.0f;
      from_[i] = -1;
    }
  }

  PUMICE_DEVICE void add(int32_t in_row) {
    const int64_t element = int64_t{in_row} * a_.channels + channel_;
    typename Access::Chunk x;
    Access::load(a_.in, element, x);
    inputs_ += 1.0f;
    const float divisor = a_.pool == Pool::average_gradient ? a_.inputs[in_row] : 1.0f;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i) {
      switch (a_.pool) {
        case Pool::sum:
        case Pool::average: value_[i] += x[i]; break;
        case Pool::average_gradient: value_[i] += x[i] / divisor; break;
        case Pool::max_gradient: value_[i] += a_.chosen[element + i] == row_ ? x[i] : 0.0f; break;
        case Pool::max:
          // True for the first, for x above the largest so far and for the first NaN.
          if (from_[i] < 0 || (!(x[i] <= value_[i]) && value_[i] == value_[i])) {
            value_[i] = x[i];
            from_[i] = in_row;
          }
          break;
      }
    }
  }

  PUMICE_DEVICE void store() {
    const int64_t element = int64_t{row_} * a_.channels + channel_;
    if (a_.pool == Pool::average && inputs_ > 0.0f) {
      PUMICE_UNROLL
      for (int32_t i = 0; i < kCount; ++i)
        value_[i] /= inputs_;
    }
    Access::store(a_.out, element, value_);
    if (a_.pool != Pool::max) return;
    PUMICE_UNROLL
    for (int32_t i = 0; i < kCount; ++i)
      a_.argmax[element + i] = from_[i];
  }

 private:
  const PoolArguments& a_;
  int32_t row_;
  int32_t channel_;
  float inputs_ = 0.0f;
  typename Access::Chunk value_;
  int32_t from_[static_cast<unsigned>(kCount)];
};

struct PoolTile {
  template <class Access>
  PUMICE_DEVICE static void run(const PoolArguments& a, const TileRun& tile) {
    const int32_t chunks = a.channels / Access::kCount;
    PUMICE_ROLLED
    for (int32_t item = thread_index(); item < a.map.tile_rows * chunks; item += block_size()) {
      const int32_t position = item / chunks;
      const int32_t row = a.map.out_row[int64_t{tile.tile} * a.map.tile_rows + position];
      if (row < 0) continue;
      PoolChunk<Access> chunk(a, row, item % chunks * Access::kCount);
      for_neighbours(a.map, tile, position, [&](int32_t in_row) { chunk.add(in_row); });
      chunk.store();
    }
  }
};

PUMICE_DEVICE bool poisoned_map(const TileMapRef& map) {
  return map.tiles.poisoned() || map.in_rows.poisoned() || map.out_rows.poisoned();
}

PUMICE_KERNEL PUMICE_THREADS(kPoolThreads) void pool_tiles(PUMICE_ARGUMENT(PoolArguments) a) {
  wait_for_previous();
  if (poisoned_map(a.map)) {
    const int64_t elements = a.map.out_rows.capacity * a.channels;
    if (element_bytes(a.type) == 4) {
      fill_with_nan<ElementType::f32>(a.out, elements);
    } else {
      fill_with_nan<ElementType::f16>(a.out, elements);
    }
    const int64_t step = int64_t{grid_size()} * block_size();
    for (int64_t i = global_thread_index(); a.pool == Pool::max && i < elements; i += step)
      a.argmax[i] = -1;
    return;
  }
  if (block_index() >= a.map.tiles.rows()) return;
  const TileRun tile = a.map.tile_order[block_index()];
  with_access<PoolTile>(a.type, a.channels, a, tile);
}

PUMICE_KERNEL PUMICE_THREADS(kPoolThreads) void count_inputs(PUMICE_ARGUMENT(CountInputsArguments)
                                                                 a) {
  wait_for_previous();
  if (poisoned_map(a.map) || block_index() >= a.map.tiles.rows()) return;
  const TileRun tile = a.map.tile_order[block_index()];
  for (int32_t position = thread_index(); position < a.map.tile_rows; position += block_size()) {
    const int32_t row = a.map.out_row[int64_t{tile.tile} * a.map.tile_rows + position];
    if (row < 0) continue;
    float inputs = 0.0f;
    for_neighbours(a.map, tile, position, [&](int32_t) { inputs += 1.0f; });
    a.inputs[row] = inputs;
  }
}

}   // namespace pumice
