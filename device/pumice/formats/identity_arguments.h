// What `identity_pairs` (maps/identity_pairs.h) is launched with.
#pragma once

#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kIdentityThreads = 256;

struct IdentityArguments {
  RowCountRef rows;
  const int32_t* order = nullptr;   // null: rank == row
  int32_t* row = nullptr;           // [capacity] of each rank
  int64_t* begin = nullptr;         // [2] the bounds of one offset that all have
};

}   // namespace pumice
