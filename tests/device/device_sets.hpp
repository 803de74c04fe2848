// Holding sets of the device and of the CPU side by side.
#pragma once

#include <algorithm>
#include <bit>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/coords/block_table.h>
#include <pumice/coords/coordinate_set.hpp>

#include "coords/cells.hpp"
#include "coords/cuda/decode.hpp"
#include "coords/cuda/set_operations.hpp"
#include "device/device_mirror.hpp"
#include "maps/cuda/reached_set.hpp"

namespace pumice::test {

/// About `size` cells of batch items 0 to 2 in a cube around 0, in random order.
inline CoordinateSetPtr random_set(int dimension, std::size_t size, std::int32_t extent,
                                   std::uint64_t seed) {
  Random random(seed);
  const Cells cells = distinct_cells(random_cells(size, dimension, extent, random), random);
  return CoordinateSet::create(tensor_of(cells, dimension), {.batch_size = 3});
}

template <class T> std::vector<T> copy_of(const T* data, std::int64_t size) {
  return data == nullptr ? std::vector<T>() : std::vector<T>(data, data + size);
}

/// Keys, order and blocks, and that the table finds every block and no other.
inline void expect_same_set(const CoordinateSetRef& device, const CoordinateSet& cpu) {
  ASSERT_FALSE(device.rows.poisoned());
  ASSERT_EQ(device.rows.rows(), cpu.size());
  const BlockIndexRef& index = cpu.index();
  ASSERT_EQ(device.blocks.rows(), index.blocks);
  const auto keys = cpu.sorted_keys();
  EXPECT_TRUE(std::equal(keys.begin(), keys.end(), device.keys));
  EXPECT_EQ(copy_of(device.block_key, index.blocks), copy_of(index.block_key, index.blocks));
  EXPECT_EQ(copy_of(device.occupancy, index.blocks), copy_of(index.occupancy, index.blocks));
  EXPECT_EQ(copy_of(device.base_rank, index.blocks), copy_of(index.base_rank, index.blocks));
  for (std::int64_t rank = 0; rank < cpu.size(); ++rank) {
    const auto row = static_cast<std::int32_t>(rank);
    ASSERT_EQ(row_of_rank(device.order, row), index.order == nullptr ? row : index.order[rank]);
    ASSERT_EQ(find_rank(device.table, device.keys[rank]), row);
  }
  for (std::int64_t block = 0; block < index.blocks; ++block) {
    const std::uint64_t next = index.block_key[block] + 1;
    ASSERT_EQ(find_block(device.table, next).slot == kNoSlot, index.find_block(next) < 0);
  }
}

/// The cells of a device set, by row.
inline Cells cells_of(TestRunner& runner, const CoordinateSetRef& set) {
  const auto columns = static_cast<std::size_t>(set.layout.dimension) + 1;
  Tensor coordinates({set.rows.capacity, 1 + set.layout.dimension}, DType::i32, runner.stream(),
                     runner.allocator());
  cuda::decode_coordinates(runner, set, coordinates.view());
  const auto* const values = coordinates.data<std::int32_t>();
  Cells cells(static_cast<std::size_t>(set.rows.rows()));
  for (std::size_t row = 0; row < cells.size(); ++row) {
    const std::int32_t* cell = values + row * columns;
    cells[row].assign(cell, cell + columns);
  }
  return cells;
}

inline Cells sorted(Cells cells) {
  std::sort(cells.begin(), cells.end());
  return cells;
}

/// What every set promises: keys ascend, blocks hold them, the table finds them.
inline void expect_well_formed(const CoordinateSetRef& set) {
  std::int64_t block = -1;
  for (std::int64_t rank = 0; rank < set.rows.rows(); ++rank) {
    const std::uint64_t key = set.keys[rank];
    if (rank > 0) {
      ASSERT_LT(set.keys[rank - 1], key);
    }
    if (rank == 0 || set.keys[rank - 1] >> kBlockBits != key >> kBlockBits) {
      ++block;
      ASSERT_EQ(set.block_key[block], key >> kBlockBits);
      ASSERT_EQ(set.base_rank[block], rank);
    }
    ASSERT_NE(set.occupancy[block] & cell_bit(key), 0u);
    ASSERT_EQ(find_rank(set.table, key), rank);
  }
  ASSERT_EQ(set.blocks.rows(), block + 1);
  std::int64_t cells = 0;
  for (std::int64_t i = 0; i <= block; ++i)
    cells += std::popcount(set.occupancy[i]);
  ASSERT_EQ(cells, set.rows.rows());
}

/// The same cells, in whatever layout.
inline void expect_same_cells(TestRunner& runner, const CoordinateSetRef& device,
                              const CoordinateSet& cpu) {
  ASSERT_FALSE(device.rows.poisoned());
  ASSERT_EQ(device.rows.rows(), cpu.size());
  expect_well_formed(device);
  EXPECT_EQ(sorted(cells_of(runner, device)), sorted(cells_of(cpu)));
}

inline cuda::CellRange range_of(const CoordinateSet& set) {
  const auto columns = options_of(set, 1, cuda::Repeats::refuse).columns;
  cuda::CellRange range;
  for (std::size_t axis = 0; axis < static_cast<std::size_t>(set.dimension()); ++axis) {
    range.low[axis] = columns.low[axis + 1];
    range.high[axis] = columns.high[axis + 1];
  }
  return range;
}

}   // namespace pumice::test
