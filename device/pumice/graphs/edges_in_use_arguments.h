// What `copy_edges_in_use` (graphs/edges_in_use.h) is launched with.
#pragma once

#include <pumice/shared/status.h>

namespace pumice {

inline constexpr int kEdgeThreads = 256;

struct EdgesInUseArguments {
  const int64_t* end = nullptr;   // [2, room] sources, then targets
  int64_t room = 0;
  // [1] each: how many there are.
  const int64_t* edges = nullptr;
  const int64_t* sources = nullptr;
  const int64_t* targets = nullptr;
  StatusRecord* status = nullptr;
  int32_t source_site = 0;
  int32_t target_site = 0;
  int64_t* to = nullptr;   // [2, room]
};

}   // namespace pumice
