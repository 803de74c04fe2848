// Convolutions and linear layers on CUDA, through tile kernels. Arguments are checked by the
// caller.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <pumice/ops/convolution.hpp>

#include "kernels/cuda/planned_kernel.hpp"

namespace pumice::cuda {

struct TileProduct {
  ConstTensorView input;      // [in rows, C_in]
  ConstTensorView second{};   // [in rows, the last of C_in], which `input` then lacks; or undefined
  ConstTensorView weight;     // [K, C_in / groups, C_out], or transposed [K, C_out, C_in]
  bool transpose_weight = false;
  std::int64_t groups = 1;
  TileWeights* kept = nullptr;   // packed weights of earlier calls; null: packed for this one
  Shortcut shortcut{};           // like `second`, for `run` over tiles of one group alone
  Epilogue epilogue{};
  bool tf32 = false;            // f32 is multiplied as tf32, but for depthwise products
  bool deterministic = false;   // of dataflows that add in memory
  TensorView output;            // [out rows, C_out]
  /// Without a map: how many rows are in use; the others are neither read nor written. None: all.
  std::optional<RowCountRef> rows{};
};

/// Whether every channel meets itself alone, for which there are kernels of their own.
inline bool is_depthwise(std::int64_t groups, std::int64_t in_channels, std::int64_t out_channels) {
  return groups > 1 && in_channels == groups && out_channels == groups;
}

/// Enqueues the product on the stream of its input and returns the name of the kernel that runs.
/// `map` null: position = row, which depthwise products do not take.
std::string run(const TileProduct& product, const KernelMapView* map);

/// Every kernel that `run` asks for with products like this one, of any number of rows, on devices
/// of `architecture` (a bit of tile_limits.h). Only types and extents of the product are looked at.
std::vector<PlannedKernel> kernels_for(const TileProduct& product, bool has_map,
                                       std::uint32_t architecture);
/// The same over tiles of pairs: products are added up in an f32 partial result and then finished.
std::string fetch_on_demand(const TileProduct& product, const KernelMapView& map);

/// The same with products by cuBLAS, of rows gathered into a buffer. Waits once for each map, for
/// its numbers of pairs; UserError while a graph is recorded, and where there is no cuBLAS. `map`
/// null: position = row. The same bits every time.
std::string gather_gemm_scatter(const TileProduct& product, const KernelMapView* map);

struct WeightProduct {
  ConstTensorView features;      // [in rows, C_in]
  ConstTensorView grad_output;   // [out rows, C_out]
  std::int64_t groups = 1;
  bool deterministic = false;
  bool tf32 = false;      // f32 is multiplied as tf32
  TensorView result;      // [K, C_in / groups, C_out], of the features' type or f32; linear: no K
  bool is_zero = false;   // the result, when the product starts
};

/// Enqueues a weight gradient on the stream of its features and returns the name of the kernel that
/// runs. `map` null: every row meets itself, which depthwise products do not take.
std::string run(const WeightProduct& product, const KernelMapView* map);

/// As for products above.
std::vector<PlannedKernel> kernels_for(const WeightProduct& product, std::uint32_t architecture);

}   // namespace pumice::cuda
