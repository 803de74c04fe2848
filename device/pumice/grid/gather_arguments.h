// What `gather_words` (pumice/grid/gather.h) is launched with.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kMostGathered = 128;
inline constexpr int kGatherThreads = 128;

struct GatherArguments {
  const int64_t* from[kMostGathered] = {};
  int64_t* to = nullptr;   // [count]
  int32_t count = 0;
};

}   // namespace pumice
