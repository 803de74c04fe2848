// Merges axes that stay neighbours, and launches.
#include "ops/cuda/permutation.hpp"

#include <algorithm>
#include <limits>
#include <vector>

#include <pumice/ops/permute_arguments.h>
#include <pumice/core/error.hpp>

#include "ops/cuda/sources.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a copy: as many as a multiprocessor holds; they walk on.
constexpr std::int64_t kBlocksPerMultiprocessor = 8;

struct Axis {
  std::int64_t extent;
  std::int64_t step;   // in the source
};

/// The axes of a copy that count, those that are neighbours in both made one.
std::vector<Axis> merged_axes(const Permutation& copy) {
  const Shape& shape = copy.from.shape();
  std::int64_t steps[Shape::kMaxRank];
  std::int64_t step = 1;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    steps[axis] = step;
    step *= shape[axis];
  }
  std::vector<Axis> axes;
  for (int axis = 0; axis < shape.rank(); ++axis) {
    const int from = copy.order[static_cast<std::size_t>(axis)];
    const Axis next{shape[from], steps[from]};
    if (next.extent == 1) continue;
    if (!axes.empty() && axes.back().step == next.step * next.extent)
      axes.back() = {axes.back().extent * next.extent, next.step};
    else
      axes.push_back(next);
  }
  if (axes.empty()) axes.push_back({1, 1});
  return axes;
}

PermuteArguments arguments_of(const Permutation& copy) {
  std::vector<Axis> axes = merged_axes(copy);
  PermuteArguments arguments{
      .from = copy.from.raw(),
      .to = copy.to.raw(),
      .element_bytes = static_cast<std::int32_t>(size_of(copy.from.dtype()))};
  if (axes.back().step == 1) {   // whole pieces of the source stay together
    std::int64_t together = reinterpret_cast<std::intptr_t>(arguments.from) |
                            reinterpret_cast<std::intptr_t>(arguments.to) |
                            axes.back().extent * arguments.element_bytes;
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      together |= axes[i].step * arguments.element_bytes;
    const std::int64_t elements = widest_access(together) / arguments.element_bytes;
    axes.back().extent /= elements;
    for (std::size_t i = 0; i + 1 < axes.size(); ++i)
      axes[i].step /= elements;
    arguments.element_bytes *= static_cast<std::int32_t>(elements);
  }
  const std::size_t unused = kMaxPermutedAxes - axes.size();
  std::fill_n(arguments.extent, unused, 1);
  for (std::size_t i = 0; i < axes.size(); ++i) {
    arguments.extent[unused + i] = static_cast<std::int32_t>(axes[i].extent);
    arguments.stride[unused + i] = axes[i].step;
    if (axes[i].step == 1 && axes[i].extent > 1)
      arguments.fastest = static_cast<std::int32_t>(unused + i);
  }
  return arguments;
}

/// How many blocks have something to do.
std::int64_t blocks_for(const PermuteArguments& arguments) {
  constexpr int last = kMaxPermutedAxes - 1;
  std::int64_t items = 1;
  for (int axis = 0; axis < kMaxPermutedAxes; ++axis) {
    const bool is_tiled = arguments.fastest != last && (axis == last || axis == arguments.fastest);
    items *= is_tiled ? divide_up(arguments.extent[axis], kPermuteTile) : arguments.extent[axis];
  }
  return arguments.fastest == last ? (items + kPermuteThreads - 1) / kPermuteThreads : items;
}

}   // namespace

void permute(jit::KernelRunner& runner, std::span<const Permutation> copies) {
  const std::int64_t most = multiprocessors_of(runner.stream()) * kBlocksPerMultiprocessor;
  PermutationsArguments arguments;
  int size = 0;
  std::int64_t blocks = 1;
  const auto launch = [&] {
    runner.run(ops_kernel("permute_axes"),
               {.blocks = blocks, .blocks_y = size, .threads = kPermuteThreads}, arguments);
    size = 0;
    blocks = 1;
  };
  for (const Permutation& copy : copies) {
    const std::size_t bytes = size_of(copy.from.dtype());
    PUMICE_EXPECTS(bytes == 2 || bytes == 4, "permute: from holds ", name_of(copy.from.dtype()),
                   "; on a device elements of 2 or 4 bytes");
    PUMICE_EXPECTS(copy.from.elements() <= std::numeric_limits<std::int32_t>::max(),
                   "permute: from has shape ", to_string(copy.from.shape()),
                   "; on a device fewer than 2^31 elements");
    if (copy.from.elements() == 0) continue;
    arguments.copy[size] = arguments_of(copy);
    blocks = std::max(blocks, std::min(most, blocks_for(arguments.copy[size])));
    if (++size == kMostPermutations) launch();
  }
  if (size > 0) launch();
}

}   // namespace pumice::cuda
