// A convolution on a device in the terms of tile kernels: what its dataflows share.
#pragma once

#include <pumice/shared/tile_arguments.h>

#include "kernels/cuda/spec_table.hpp"
#include "ops/cuda/convolution.hpp"

namespace pumice::cuda {

/// How rows are gathered, and products written, on devices of `architecture`; only types and
/// extents are looked at.
TileProblem describe(const TileProduct& product, Gather gather, std::uint32_t architecture,
                     Write write = Write::store);

EpilogueArguments epilogue_of(const Epilogue& epilogue);

/// Every position is a row.
TileMapRef identity_map(const TileProduct& product);

/// What features are multiplied as; tf32 goes with f32 alone. UserError for types of the CPU.
ElementType operand_type(DType features, bool tf32, const char* op);

/// Positions of the tiles that depthwise products run on: what most other kernels take too.
inline constexpr std::int32_t kDepthwiseTileRows = 128;

}   // namespace pumice::cuda
