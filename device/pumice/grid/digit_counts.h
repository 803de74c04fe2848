// How often each digit of each pass of a radix sort occurs (grid/radix_sort.h): counted by the
// sort, or by the kernel that writes the keys, which saves a launch and reading them once more.
#pragma once

#include <pumice/grid/sort_arguments.h>
#include <pumice/platform.h>

namespace pumice {

template <class Key> PUMICE_DEVICE uint32_t digit_of(Key key, int shift, int bits) {
  return static_cast<uint32_t>(key >> shift) & ((uint32_t{1} << bits) - 1);
}

PUMICE_DEVICE int digit_bits(const SortDigits& digits, int pass) {
  const int left = digits.bits - pass * digits.width;
  return left < digits.width ? left : digits.width;
}

/// How many keys of a block have each digit of each pass.
struct DigitCounts {
  uint32_t of[kMostSortPasses][kSortDigits];

  /// For a whole block of kThreads.
  template <int kThreads> PUMICE_DEVICE void clear(const SortDigits& digits) {
    for (int pass = 0; pass < digits.passes; ++pass) {
      for (int digit = thread_index(); digit < kSortDigits; digit += kThreads)
        of[pass][digit] = 0;
    }
    block_sync();
  }
  template <class Key> PUMICE_DEVICE void count(const SortDigits& digits, Key key) {
    for (int pass = 0; pass < digits.passes; ++pass)
      atomic_add(&of[pass][digit_of(key, pass * digits.width, digit_bits(digits, pass))], 1u);
  }
  /// To the totals; for a whole block.
  template <int kThreads> PUMICE_DEVICE void add_to(const DigitTotals& totals) {
    block_sync();
    for (int pass = 0; pass < totals.digits.passes; ++pass) {
      for (int digit = thread_index(); digit < kSortDigits; digit += kThreads) {
        const uint32_t mine = of[pass][digit];
        if (mine > 0) atomic_add(&totals.count[pass * kSortDigits + digit], mine);
      }
    }
  }
};

}   // namespace pumice
