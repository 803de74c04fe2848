// Numbers that a caller gives for entries, of which some may be mistakes.
#pragma once

#include <pumice/graphs/patterns_arguments.h>
#include <pumice/platform.h>
#include <pumice/thread/report.h>

namespace pumice {

/// What a list has for an entry: its row, column, type or part; 0 for a mistake, which is reported.
/// Whoever gives a list of entries has at least one row, column, type or part.
PUMICE_DEVICE int32_t entry_number(const NumberList& numbers, int64_t entry) {
  const int64_t number = numbers.is_wide != 0
                             ? static_cast<const int64_t*>(numbers.number)[entry]
                             : int64_t{static_cast<const int32_t*>(numbers.number)[entry]};
  if (number >= 0 && number < numbers.limit) return static_cast<int32_t>(number);
  const bool fits = entry <= int64_t{0x7fffffff};   // the record names elements in 31 bits
  report(numbers.status, kBadNumber, numbers.site, number, numbers.limit,
         fits ? static_cast<int32_t>(entry) : -1);
  return 0;
}

}   // namespace pumice
