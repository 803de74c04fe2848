// What `fill_ranges` (pumice/grid/fill.h) is launched with.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kMaxFillRanges = 32;
inline constexpr int kFillThreads = 256;
inline constexpr int kFillWords = kFillThreads * 16;   // a block writes as many

struct FillRange {
  uint32_t* data = nullptr;   // 16-byte aligned
  int64_t words = 0;
  uint32_t value = 0;
  int32_t first_block = 0;   // blocks [first_block, that of the next range) are this one's
};

struct FillRanges {
  FillRange range[kMaxFillRanges];
  int32_t count = 0;
};

}   // namespace pumice
