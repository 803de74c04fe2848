// What the kernel that changes the order of axes (permute.h) is launched with.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kPermuteThreads = 256;
inline constexpr int kMaxPermutedAxes = 6;
/// Rows and columns of what a block turns at a time.
inline constexpr int kPermuteTile = 32;
/// Copies of one launch, whose arguments are up to 4 KiB long.
inline constexpr int kMostPermutations = 32;

/// A copy whose axes are in another order. The last axis of `to` runs fastest there, axis `fastest`
/// of `to` in `from`; axes that are not used come first, with extent 1.
struct PermuteArguments {
  const void* from = nullptr;
  void* to = nullptr;
  int64_t stride[kMaxPermutedAxes] = {};   // in `from`, of each axis of `to`, in elements
  int32_t extent[kMaxPermutedAxes] = {};
  int32_t fastest = kMaxPermutedAxes - 1;
  int32_t element_bytes = 4;   // 2 or 4; where one axis runs fastest in both, up to 16
};

struct PermutationsArguments {
  PermuteArguments copy[kMostPermutations];
};

}   // namespace pumice
