// Every row with itself, in the order of ranks: the pairs of a kernel of one offset that goes
// nowhere.
#pragma once

#include <pumice/coords/block_table.h>
#include <pumice/formats/identity_arguments.h>
#include <pumice/platform.h>

namespace pumice {

PUMICE_KERNEL PUMICE_THREADS(kIdentityThreads) void identity_pairs(
    PUMICE_ARGUMENT(IdentityArguments) a) {
  wait_for_previous();
  const int64_t rows = a.rows.rows();
  const int64_t rank = global_thread_index();
  if (rank == 0) {
    a.begin[0] = 0;
    a.begin[1] = rows;
  }
  if (rank < rows) a.row[rank] = row_of_rank(a.order, static_cast<int32_t>(rank));
}

}   // namespace pumice
