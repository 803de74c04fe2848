// What `encode_coordinates` (pumice/coords/encode.h) is launched with.
#pragma once

#include <pumice/coords/level_arguments.h>
#include <pumice/grid/sort_arguments.h>
#include <pumice/shared/key_layout.h>
#include <pumice/shared/row_count.h>

namespace pumice {

inline constexpr int kEncodeThreads = 256;
inline constexpr int kEncodeItems = 4;   // rows of a thread: digits are counted once a block
inline constexpr int kEncodeRows = kEncodeThreads * kEncodeItems;

struct EncodeArguments {
  RowCountRef rows{};
  const int32_t* coordinates = nullptr;   // [rows, 1 + dimension]: batch, then axes
  KeyLayout layout{};
  int32_t low[kMaxDimension + 1] = {};   // what each column may hold, both ends included
  int32_t high[kMaxDimension + 1] = {};
  uint64_t* keys = nullptr;
  DigitTotals totals{};   // of the keys; null where the sort does without
  RowTrouble* outside = nullptr;
};

}   // namespace pumice
