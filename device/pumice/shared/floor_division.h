// Division that rounds towards minus infinity, as cells of negative coordinates need it.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

/// floor(value / divisor) for divisor > 0.
PUMICE_SHARED constexpr int64_t floor_divide(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return quotient - (value % divisor < 0 ? 1 : 0);
}

/// ceil(value / divisor) for divisor > 0.
PUMICE_SHARED constexpr int64_t ceil_divide(int64_t value, int64_t divisor) {
  const int64_t quotient = value / divisor;
  return quotient + (value % divisor > 0 ? 1 : 0);
}

}   // namespace pumice
