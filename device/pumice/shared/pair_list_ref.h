// The pairs of a map as kernels see them, offset by offset.
#pragma once

#include <pumice/shared/row_count.h>

namespace pumice {

/// The pairs of offset k are [offset_begin[k], offset_begin[k + 1]), outputs in rank order.
struct PairListRef {
  const int64_t* offset_begin = nullptr;   // [offsets + 1]
  const int32_t* in = nullptr;             // [pairs] input row
  const int32_t* out = nullptr;            // [pairs] output row
  RowCountRef pairs;
  int32_t offsets = 0;
};

}   // namespace pumice
