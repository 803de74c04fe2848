// Memory and launches.
#include "ops/cuda/occupied.hpp"

#include "ops/cuda/sources.hpp"

namespace pumice::cuda {

OccupiedCells::OccupiedCells(jit::KernelRunner& runner, ConstTensorView dense, ConstTensorView mask,
                             const DensePlacement& grid) {
  arguments_.dense = dense.raw();
  arguments_.mask = mask.defined() ? mask.data<std::uint8_t>() : nullptr;
  arguments_.volume = 1;
  for (int axis = 0; axis < grid.dimension; ++axis)
    arguments_.volume *= grid.shape[axis];
  arguments_.cells = dense.extent(0) * arguments_.volume;
  arguments_.channels = static_cast<std::int32_t>(dense.extent(1));
  arguments_.element_bytes = static_cast<std::int32_t>(size_of(dense.dtype()));
  arguments_.grid = grid;
  occupied_ = runner.make<std::uint32_t>((arguments_.cells + 31) / 32);
  begin_ = runner.make<std::int64_t>(blocks() + 1);
  arguments_.occupied = occupied_.data();
  arguments_.begin = begin_.data();
  arguments_.count = begin_.data() + blocks();
  runner.run(ops_kernel("mark_occupied"), {.blocks = blocks(), .threads = kRowThreads}, arguments_);
  runner.run(ops_kernel("sum_occupied"), {.blocks = 1, .threads = kOccupiedSumThreads}, arguments_);
}

void OccupiedCells::write(jit::KernelRunner& runner, TensorView coordinates) {
  arguments_.coordinates = coordinates.data<std::int32_t>();
  runner.run(ops_kernel("write_occupied"), {.blocks = blocks(), .threads = kRowThreads},
             arguments_);
}

}   // namespace pumice::cuda
