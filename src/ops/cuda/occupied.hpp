// Which cells of a dense array hold a site, on CUDA.
#pragma once

#include <cstdint>

#include <pumice/ops/occupied_arguments.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

class OccupiedCells {
 public:
  /// dense: [B, C, shape…] of `grid`; `mask`: u8 [B, shape…], or undefined. Two launches.
  OccupiedCells(jit::KernelRunner& runner, ConstTensorView dense, ConstTensorView mask,
                const DensePlacement& grid);
  /// How many there are, on the device: one int64.
  const std::int64_t* count() const { return arguments_.count; }
  /// int32 [count, 1 + D]. One launch.
  void write(jit::KernelRunner& runner, TensorView coordinates);

 private:
  std::int64_t blocks() const { return (arguments_.cells + kRowThreads - 1) / kRowThreads; }

  OccupiedArguments arguments_{};
  Buffer<std::uint32_t> occupied_;
  Buffer<std::int64_t> begin_;   // and behind them the count
};

}   // namespace pumice::cuda
