// A kernel before it runs: its source, and what lists and checks of kernels say about it.
#pragma once

#include <cstdint>

#include <pumice/shared/gradient_spec.h>
#include <pumice/shared/tile_spec.h>

#include "jit/compile.hpp"

namespace pumice::cuda {

struct PlannedKernel {
  const jit::Source* source = nullptr;   // lives as long as the process
  const char* kind = "";                 // "wgmma tiles": what compiles alike
  std::int32_t in_channels = 0;          // of a group; 0 where a kernel takes any
  std::int32_t out_channels = 0;
  int shared_bytes = 0;   // dynamic; for a weight gradient those of 27 offsets
};

PlannedKernel planned(const TileSpec& spec);
PlannedKernel planned(const GradientSpec& spec);
/// What packs weights for every tile.
PlannedKernel planned_packing();
/// What sums the slots of deterministic weight gradients into a type, and depthwise products of it.
PlannedKernel planned_sums(ElementType type);
PlannedKernel planned_depthwise(ElementType type);
/// What makes an output of a type out of products that were added up in memory, as of splits.
PlannedKernel planned_finish(ElementType type);

}   // namespace pumice::cuda
