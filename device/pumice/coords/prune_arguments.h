// What the kernels that prune a set (pumice/coords/prune.h) are launched with.
#pragma once

#include <pumice/shared/coordinate_set_ref.h>

namespace pumice {

inline constexpr int kPruneThreads = 256;   // and rows a tile
inline constexpr int kPruneSumThreads = 1024;

struct PruneArguments {
  RowCountRef rows{};
  const uint64_t* keys = nullptr;   // by rank
  const int32_t* order = nullptr;   // rank -> row; null when they are equal
  const uint8_t* keep = nullptr;    // [rows] by row
  uint32_t* rank_begin = nullptr;   // [tiles] kept ranks before each tile
  uint32_t* row_begin = nullptr;    // [tiles] kept rows before each tile
  int32_t* new_row = nullptr;       // [rows] by row; of kept ones
  int32_t* kept = nullptr;          // [kept_capacity] old row of each new one
  uint64_t* kept_keys = nullptr;    // [rows] by new rank
  uint32_t* kept_rows = nullptr;    // [rows] new row of each new rank
  int64_t* count = nullptr;         // kept rows; poison where `rows` is
  int64_t kept_capacity = 0;
};

}   // namespace pumice
