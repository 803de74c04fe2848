// Brings words from many places side by side, so that one copy takes all of them to the host.
#pragma once

#include <pumice/grid/gather_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kGatherThreads) void gather_words(PUMICE_ARGUMENT(GatherArguments) a) {
  wait_for_previous();
  const int64_t i = global_thread_index();
  if (i < a.count) a.to[i] = *a.from[i];
}

}   // namespace pumice
