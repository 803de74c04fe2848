// Fills several arrays with a word each, in one launch: whatever a sequence of kernels counts in
// starts at zero, tables start empty.
#pragma once

#include <pumice/grid/fill_arguments.h>
#include <pumice/platform.h>

namespace pumice {

struct alignas(16) FourWords {
  uint32_t word[4];
};

PUMICE_KERNEL PUMICE_THREADS(kFillThreads) void fill_ranges(PUMICE_ARGUMENT(FillRanges) ranges) {
  wait_for_previous();
  int at = 0;
  while (at + 1 < ranges.count && ranges.range[at + 1].first_block <= block_index())
    ++at;
  const FillRange& range = ranges.range[at];
  const int64_t first = int64_t{block_index() - range.first_block} * kFillWords;
  const uint32_t value = range.value;
  PUMICE_UNROLL
  for (int step = 0; step < kFillWords; step += 4 * kFillThreads) {
    const int64_t i = first + step + 4 * thread_index();
    if (i + 4 <= range.words) {
      *reinterpret_cast<FourWords*>(range.data + i) = {{value, value, value, value}};
    } else {
      for (int64_t j = i; j < range.words; ++j)
        range.data[j] = value;
    }
  }
}

}   // namespace pumice
