// Writes what it was launched with: bytes of the host that a graph keeps as a part of itself, where
// a copy would go to the host's memory at every launch of the graph.
#pragma once

#include <pumice/grid/upload_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kUploadThreads) void write_words(PUMICE_ARGUMENT(UploadArguments) a) {
  wait_for_previous();
  const int64_t i = global_thread_index();
  if (i < a.words) a.to[i] = a.word[i];
}

}   // namespace pumice
