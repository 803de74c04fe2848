// What the launches pass that bring rows together for a dense product and add its rows up again.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kMoveThreads = 256;

/// to[i] = from[row[i]].
struct GatherRowsArguments {
  const int32_t* row = nullptr;   // [rows]
  const void* from = nullptr;     // rows of row_bytes
  void* to = nullptr;             // [rows, row_bytes]
  int64_t rows = 0;
  int32_t row_bytes = 0;   // a multiple of 2
};

/// sum[row[i]] += product[i]. No row occurs twice.
struct ScatterAddArguments {
  const int32_t* row = nullptr;     // [rows]
  const float* product = nullptr;   // [rows, channels]
  float* sum = nullptr;
  int64_t rows = 0;
  int32_t channels = 0;
};

}   // namespace pumice
