// What `rekey_sets` (pumice/coords/rekey.h) is launched with.
#pragma once

#include <pumice/shared/coordinate_set_ref.h>

namespace pumice {

inline constexpr int kRekeyThreads = 256;
inline constexpr int kMaxRekeySets = 2;

struct RekeySource {
  RowCountRef rows{};
  const uint64_t* keys = nullptr;   // [rows] by rank
  const int32_t* order = nullptr;   // rank -> row; null when they are equal
  KeyLayout layout{};
  uint32_t first_value = 0;   // the value of its row 0
  int32_t first_block = 0;    // of the launch
};

struct RekeyArguments {
  RekeySource source[kMaxRekeySets];
  int32_t sources = 0;
  KeyLayout layout{};                   // of the new keys
  int32_t factor[kMaxDimension] = {};   // cells of the old an axis to one of the new
  uint64_t* keys = nullptr;             // [rows of all sources], source after source
  uint32_t* values = nullptr;           // first_value + row
  int64_t* total = nullptr;             // rows of all sources; poison where one is
};

}   // namespace pumice
