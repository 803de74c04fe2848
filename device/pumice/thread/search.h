// Binary searches of one thread.
#pragma once

#include <pumice/platform.h>

namespace pumice {

/// The last k in [0, size) with begin[k] <= value; begin[0] is not above it.
PUMICE_DEVICE int32_t last_begin(const int64_t* begin, int32_t size, int64_t value) {
  int32_t low = 0, high = size;
  while (high - low > 1) {
    const int32_t middle = low + (high - low) / 2;
    if (begin[middle] <= value) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}

/// The first k in [0, size) with key_of(k) >= value, or size; key_of ascends.
template <class KeyOf>
PUMICE_DEVICE int64_t first_not_below(const KeyOf& key_of, int64_t size, int64_t value) {
  int64_t low = 0, high = size;
  while (low < high) {
    const int64_t middle = low + (high - low) / 2;
    if (key_of(middle) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

PUMICE_DEVICE int64_t first_not_below(const uint32_t* keys, int64_t size, int64_t value) {
  return first_not_below([&](int64_t k) { return int64_t{keys[k]}; }, size, value);
}

}   // namespace pumice
