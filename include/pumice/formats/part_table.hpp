// The memory of what products on a device go over; see shared/part_table.h for the picture.
#pragma once

#include <cstdint>

#include <pumice/shared/part_table.h>
#include <pumice/core/buffer.hpp>

namespace pumice {

/// Of parts whose slots are single entries.
struct PartTable {
  Buffer<PartRange> range;
  Buffer<std::int64_t> piece_begin;
  Buffer<std::int32_t> row;
  Buffer<std::int32_t> target;
  Buffer<LongRow> shared_row;
  /// What kernels get, but for the lists of the parts themselves.
  PartTableRef ref{};
};

}   // namespace pumice
