// Memory and launch of pairs of rows with themselves.
#include "formats/cuda/identity_pairs.hpp"

#include <algorithm>

#include <pumice/formats/identity_arguments.h>

#include "formats/cuda/sources.hpp"

namespace pumice::cuda {

IdentityPairs::IdentityPairs(jit::KernelRunner& runner, RowCountRef rows, const std::int32_t* order)
    : rows_(rows),
      row_(runner.make<std::int32_t>(rows.capacity)),
      begin_(runner.make<std::int64_t>(2)) {
  // Also where there is no row: somebody has to write the bounds.
  const std::int64_t blocks = (rows.capacity + kIdentityThreads - 1) / kIdentityThreads;
  runner.run(
      formats_kernel("identity_pairs"),
      {.blocks = std::max<std::int64_t>(blocks, 1), .threads = kIdentityThreads},
      IdentityArguments{.rows = rows, .order = order, .row = row_.data(), .begin = begin_.data()});
}

}   // namespace pumice::cuda
