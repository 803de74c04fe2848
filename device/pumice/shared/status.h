// What went wrong on the device: one sticky record for each stream, in host memory that the device
// can write. A clean run writes nothing; the next call that waits for the stream raises what it
// finds here and clears it.
#pragma once

#include <pumice/shared/types.h>

namespace pumice {

enum StatusCode : int32_t {
  kFine = 0,
  kOverCapacity = 1,    // `needed` rows, room for `capacity`
  kOutsideLayout = 2,   // `needed` of `capacity` coordinates have no key in the layout
  kPoisonedInput = 3,   // an input's count was poison already
  kDuplicateRows = 4,   // `needed` of `capacity` rows have the coordinates of another
  kBadRow = 5,          // element `row` of a list is `needed`, which is none of `capacity` rows
  kBadNumber = 6,       // element `row` of a list is `needed`, where there are `capacity`
  kSingleRow = 7,       // one row, where statistics of several were needed
};

/// The first trouble stays. Whoever sets `claim` from 0 to 1 writes the other fields, `code` last,
/// after a fence that reaches the host.
struct StatusRecord {
  int32_t claim = 0;
  int32_t code = kFine;
  int32_t site = 0;   // a number the host has registered under a name
  int32_t row = -1;   // one of the rows it is about; -1 where there is none to name
  int64_t needed = 0;
  int64_t capacity = 0;
};
static_assert(sizeof(StatusRecord) == 32 && alignof(StatusRecord) == 8);

}   // namespace pumice
