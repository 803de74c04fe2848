// Copies edges, of which the first are in use: those may lead from and to nodes in use alone, and
// others, which fill the room, anywhere. A mistake is reported with the number of nodes, which the
// host does not know, and becomes 0.
#pragma once

#include <pumice/graphs/edges_in_use_arguments.h>
#include <pumice/graphs/entry_number.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kEdgeThreads) void copy_edges_in_use(
    PUMICE_ARGUMENT(EdgesInUseArguments) a) {
  wait_for_previous();
  const int64_t edge = global_thread_index();
  if (edge >= a.room) return;
  const int64_t* const source = a.end;
  const int64_t* const target = a.end + a.room;
  if (edge >= *a.edges) {
    a.to[edge] = source[edge];
    a.to[a.room + edge] = target[edge];
    return;
  }
  const NumberList sources{source, *a.sources, a.status, a.source_site, 1};
  const NumberList targets{target, *a.targets, a.status, a.target_site, 1};
  a.to[edge] = entry_number(sources, edge);
  a.to[a.room + edge] = entry_number(targets, edge);
}

}   // namespace pumice
