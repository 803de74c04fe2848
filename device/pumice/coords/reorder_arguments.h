// What the kernel that checks an order of rows (pumice/coords/reorder.h) is launched with.
#pragma once

#include <pumice/shared/coordinate_set_ref.h>
#include <pumice/shared/status.h>

namespace pumice {

inline constexpr int kReorderThreads = 256;

struct ReorderArguments {
  RowCountRef rows{};
  const int32_t* row = nullptr;   // [rows] as it was given
  uint32_t* checked = nullptr;    // [rows] the same; its own place for what is no row
  StatusRecord* status = nullptr;
  int32_t site = 0;
};

}   // namespace pumice
