// A list of row numbers that somebody gave, as kernels are given it.
#pragma once

#include <pumice/shared/status.h>
#include <pumice/shared/types.h>

namespace pumice {

/// A list of row numbers, -1 for none. Others outside [0, limit) are mistakes: they are reported,
/// and what is made of them is NaN.
struct RowList {
  const void* row = nullptr;   // i32, or i64
  int64_t size = 0;
  int64_t limit = 0;
  StatusRecord* status = nullptr;   // null: nobody reports, of lists that kernels made
  int32_t site = 0;                 // the name of the list
  bool wide = false;                // i64
};

}   // namespace pumice
