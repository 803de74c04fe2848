// A set made of cells that a kernel marks as bits of blocks.
#pragma once

#include <string>

#include <pumice/coords/block_set_arguments.h>

#include "coords/cuda/device_set.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Between the two calls a kernel marks cells; what it is launched with holds `marked()`.
class MarkedSet {
 public:
  MarkedSet(jit::KernelRunner& runner, const KeyLayout& layout, SetCapacity capacity,
            const std::string& name, FillList& fill);
  MarkedBlocks marked();
  /// Sorts the blocks and writes the cells: the launches of the sort and one. Poison in `source`,
  /// which the marking depended on, goes on to the set.
  DeviceSet finish(jit::KernelRunner& runner, RowCountRef source);

 private:
  std::int64_t tiles() const {
    return (set_.capacity().blocks + kBlockSetTile - 1) / kBlockSetTile;
  }

  DeviceSet set_;
  RadixSort<std::uint64_t> sort_;
  Buffer<std::int64_t> count_;
  Buffer<std::uint64_t> states_;
  Buffer<std::uint32_t> ticket_;
};

}   // namespace pumice::cuda
