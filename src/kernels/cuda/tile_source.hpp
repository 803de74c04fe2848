// Tile specifications as source text: the few lines of C++ that instantiate a kernel.
#pragma once

#include <string>

#include <pumice/shared/tile_spec.h>

namespace pumice::cuda {

/// The kernel's name in every source below.
inline constexpr const char* kTileKernel = "tile_mma";

/// A short name for logs and file names: "wgmma_bf16_96x96_256x96x96_s3".
std::string tile_name(const TileSpec& spec);

/// InternalError when the spec is not valid, with the reason.
std::string tile_source(const TileSpec& spec);

/// Adds partial results, or the products of pairs, and finishes them into rows of this type
/// (FinishArguments, FinishPairsArguments), in one source.
inline constexpr const char* kFinishKernel = "finish_partial";
inline constexpr const char* kFinishPairsKernel = "finish_pairs";
std::string finish_source(ElementType output);

/// Moves rows for dense products (GatherRowsArguments, ScatterAddArguments).
inline constexpr const char* kGatherRowsKernel = "gather_rows";
inline constexpr const char* kScatterAddKernel = "scatter_add_rows";
std::string gather_scatter_source();

/// Packs weights for any spec: one (PackWeightArguments), or many (PackWeightsArguments).
inline constexpr const char* kPackKernel = "pack_weight";
inline constexpr const char* kPackManyKernel = "pack_weights";
std::string pack_source();

/// Depthwise convolution of rows of this type (DepthwiseArguments) and its weight gradient
/// (DepthwiseGradientArguments), in one source.
inline constexpr const char* kDepthwiseKernel = "depthwise";
inline constexpr const char* kDepthwiseGradientKernel = "depthwise_gradient";
std::string depthwise_source(ElementType type);
/// The convolution into a partial result: Write::add or Write::slots.
std::string depthwise_partial_source(ElementType type, Write write);

}   // namespace pumice::cuda
