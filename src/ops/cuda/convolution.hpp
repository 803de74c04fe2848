// Convolutions and linear layers on CUDA, through tile kernels. Arguments are checked by the
// caller.
#pragma once

#include <string>

#include <pumice/kernels/epilogue.hpp>
#include <pumice/kernels/tile_weights.hpp>
#include <pumice/maps/kernel_map.hpp>

namespace pumice::cuda {

struct TileProduct {
  ConstTensorView input;    // [in rows, C_in]
  ConstTensorView weight;   // [K, C_in / groups, C_out], or transposed [K, C_out, C_in]
  bool transpose_weight = false;
  std::int64_t groups = 1;
  TileWeights* kept = nullptr;   // packed weights of earlier calls; null: packed for this one
  Epilogue epilogue{};
  TensorView output;   // [out rows, C_out]
};

/// Enqueues the product on the stream of its input and returns the name of the kernel that runs.
/// `map` null: position = row.
std::string run(const TileProduct& product, const KernelMapView* map);

}   // namespace pumice::cuda
