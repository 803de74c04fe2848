// The digit of a key that a pass of the radix sort looks at, and counting the first pass's where
// the keys are made.
#pragma once

#include <pumice/grid/sort_arguments.h>
#include <pumice/platform.h>

namespace pumice {

template <class Key> PUMICE_DEVICE uint32_t digit_of(Key key, int shift, int bits) {
  return static_cast<uint32_t>(key >> shift) & ((uint32_t{1} << bits) - 1);
}

/// Counts element `i` of what is to be sorted; for the kernel that writes it.
template <class Key>
PUMICE_DEVICE void count_for_sort(const FirstHistogram& first, int64_t i, Key key) {
  atomic_add(&first.histogram[i / kSortTile * kDigits + digit_of(key, first.shift, first.bits)],
             1u);
}

}   // namespace pumice
