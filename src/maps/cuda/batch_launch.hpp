// A launch for the tasks of a batch, each with blocks of its own.
#pragma once

#include <cstdint>
#include <limits>
#include <span>

#include <pumice/core/error.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// How many parts cover a size.
inline std::int64_t ceil_of(std::int64_t size, std::int64_t part) {
  return (size + part - 1) / part;
}

template <class Batch> std::span<typename Batch::Task> tasks_of(Batch& batch) {
  return {batch.task, static_cast<std::size_t>(batch.tasks)};
}

template <class Batch> std::span<const typename Batch::Task> tasks_of(const Batch& batch) {
  return {batch.task, static_cast<std::size_t>(batch.tasks)};
}

/// Each task gets `blocks_of(task)` blocks, which it finds by `first_block`.
template <class Batch, class BlocksOf>
void launch_batch(jit::KernelRunner& runner, const jit::KernelName& kernel, int threads,
                  Batch& batch, const BlocksOf& blocks_of) {
  std::int64_t next = 0;
  for (std::int32_t i = 0; i < batch.tasks; ++i) {
    PUMICE_ENSURES(next <= std::numeric_limits<std::int32_t>::max(), kernel.name, " of ", next,
                   " blocks");
    batch.first_block[i] = static_cast<std::int32_t>(next);
    next += blocks_of(batch.task[i]);
  }
  runner.run(kernel, {.blocks = next, .threads = threads}, batch);
}

}   // namespace pumice::cuda
