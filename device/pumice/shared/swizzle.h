// Where 16-byte chunks of a row lie in shared memory, so that eight rows of one column of chunks
// lie in different banks. The patterns are those that wgmma reads; ldmatrix likes them as well.
//
//   128-byte rows: chunk ^= row % 8          0 1 2 3 4 5 6 7
//                                            1 0 3 2 5 4 7 6   …
//    64-byte rows: chunk ^= row / 2 % 4      two rows share a 128-byte line
//    32-byte rows: chunk ^= row / 4 % 2      four rows share one
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int32_t kSwizzlePeriod = 8;   // rows after which every pattern repeats

PUMICE_SHARED constexpr int32_t swizzled_chunk(int32_t row_bytes, int32_t row, int32_t chunk) {
  const uint32_t rows_a_line = 128u / static_cast<uint32_t>(row_bytes);
  const uint32_t chunks = static_cast<uint32_t>(row_bytes) / 16u;
  return chunk ^ static_cast<int32_t>(static_cast<uint32_t>(row) / rows_a_line % chunks);
}

/// Bytes from the start of a tile of such rows.
PUMICE_SHARED constexpr int32_t swizzled_offset(int32_t row_bytes, int32_t row, int32_t chunk) {
  return row * row_bytes + swizzled_chunk(row_bytes, row, chunk) * 16;
}

}   // namespace pumice
