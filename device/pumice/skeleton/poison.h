// What a kernel does when a count it depends on is poison: every row of the output becomes NaN, so
// that nobody takes a truncated result for a whole one.
#pragma once

#include <pumice/platform.h>
#include <pumice/shared/tile_arguments.h>
#include <pumice/shared/tile_spec.h>

namespace pumice {

template <ElementType kType> PUMICE_DEVICE void fill_with_nan(void* data, int64_t elements) {
  const int64_t step = int64_t{grid_size()} * block_size();
  PUMICE_ROLLED
  for (int64_t i = global_thread_index(); i < elements; i += step) {
    if constexpr (element_bytes(kType) == 4) {
      static_cast<uint32_t*>(data)[i] = 0x7fffffffu;
    } else {
      static_cast<uint16_t*>(data)[i] = 0x7fffu;
    }
  }
}

/// A partial result is left alone: whoever finishes it sees the same counts.
template <TileSpec S> PUMICE_DEVICE void write_poison(const TileArguments& arguments) {
  if (S.write != Write::store || block_index_y() != 0) return;
  fill_with_nan<S.output>(arguments.output,
                          arguments.map.out_rows.capacity * int64_t{S.groups * S.out_channels});
}

}   // namespace pumice
