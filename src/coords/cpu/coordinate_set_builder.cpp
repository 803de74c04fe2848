// Blocks, their table and decoded coordinates of a coordinate set.
#include "coords/cpu/coordinate_set_builder.hpp"

#include <algorithm>
#include <bit>

#include <pumice/core/parallel.hpp>

#include "coords/cpu/compact.hpp"

namespace pumice {
namespace {

constexpr std::int64_t kChunk = std::int64_t{1} << 14;

Tensor decode_coordinates(std::span<const std::uint64_t> keys, const KeyLayout& layout) {
  const auto rows = static_cast<std::int64_t>(keys.size());
  const int columns = 1 + layout.dimension;
  Tensor coordinates(Shape{rows, columns}, DType::i32);
  auto* data = coordinates.data<std::int32_t>();
  parallel_for(rows, kChunk, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const std::uint64_t key = keys[static_cast<std::size_t>(row)];
      std::int32_t* cell = data + row * columns;
      cell[0] = static_cast<std::int32_t>(decode_batch(layout, key));
      for (int axis = 0; axis < layout.dimension; ++axis) {
        cell[1 + axis] = static_cast<std::int32_t>(decode_axis(layout, key, axis));
      }
    }
  });
  return coordinates;
}

struct Blocks {
  Buffer<std::uint64_t> key;
  Buffer<std::uint64_t> occupancy;
  Buffer<std::int32_t> base_rank;
};

/// One block for every run of keys that share all but their local bits.
Blocks find_blocks(std::span<const std::uint64_t> keys) {
  const auto* key = keys.data();
  const auto rows = static_cast<std::int64_t>(keys.size());
  const Compaction starts(rows, [key](std::int64_t rank) {
    return rank == 0 || key[rank] >> kBlockBits != key[rank - 1] >> kBlockBits;
  });
  const std::int64_t count = starts.kept();
  Blocks blocks{Buffer<std::uint64_t>(count), Buffer<std::uint64_t>(count),
                Buffer<std::int32_t>(count)};
  starts.for_each([&](std::int64_t rank, std::int64_t block) {
    blocks.key[block] = key[rank] >> kBlockBits;
    blocks.base_rank[block] = static_cast<std::int32_t>(rank);
  });
  parallel_for(count, kChunk / 16, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t block = begin; block < end; ++block) {
      const std::int64_t last = block + 1 < count ? blocks.base_rank[block + 1] : rows;
      std::uint64_t occupancy = 0;
      for (std::int64_t rank = blocks.base_rank[block]; rank < last; ++rank) {
        occupancy |= std::uint64_t{1} << (key[rank] & (kBlockCells - 1));
      }
      blocks.occupancy[block] = occupancy;
    }
  });
  return blocks;
}

/// Open addressing at a load of at most one half.
Buffer<std::int32_t> make_slots(std::span<const std::uint64_t> block_keys) {
  const std::uint64_t size = std::bit_ceil(std::max<std::uint64_t>(2 * block_keys.size(), 2));
  Buffer<std::int32_t> slots(static_cast<std::int64_t>(size));
  std::fill_n(slots.data(), size, -1);
  for (std::size_t block = 0; block < block_keys.size(); ++block) {
    std::uint64_t slot = block_hash(block_keys[block]) & (size - 1);
    while (slots[static_cast<std::int64_t>(slot)] >= 0)
      slot = (slot + 1) & (size - 1);
    slots[static_cast<std::int64_t>(slot)] = static_cast<std::int32_t>(block);
  }
  return slots;
}

}   // namespace

CoordinateSetPtr CoordinateSetBuilder::build(Buffer<std::uint64_t> keys, Buffer<std::int32_t> order,
                                             Tensor coordinates, const KeyLayout& layout,
                                             std::int32_t batch_size,
                                             const CoordinateOptions& options) {
  const std::shared_ptr<CoordinateSet> set(new CoordinateSet());
  const std::int64_t rows = keys.size();
  set->options_ = options;
  set->options_.batch_size = batch_size;
  set->batch_size_ = batch_size;
  set->rows_ = RowCount::exact(rows);
  set->coordinates_ =
      coordinates.defined() ? std::move(coordinates) : decode_coordinates(keys.span(), layout);
  Blocks blocks = find_blocks(keys.span());
  set->keys_ = std::move(keys);
  set->order_ = std::move(order);
  set->block_key_ = std::move(blocks.key);
  set->occupancy_ = std::move(blocks.occupancy);
  set->base_rank_ = std::move(blocks.base_rank);
  set->slots_ = make_slots(set->block_key_.span());
  set->index_ = {.layout = layout,
                 .blocks = set->block_key_.size(),
                 .block_key = set->block_key_.data(),
                 .occupancy = set->occupancy_.data(),
                 .base_rank = set->base_rank_.data(),
                 .order = set->order_.data(),
                 .slots = set->slots_.data(),
                 .slot_mask = static_cast<std::uint32_t>(set->slots_.size() - 1)};
  return set;
}

}   // namespace pumice
