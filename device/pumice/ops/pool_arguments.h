// What the kernels that pool over kernel maps are launched with.
#pragma once

#include <pumice/shared/tile_map.h>
#include <pumice/shared/tile_spec.h>
#include <pumice/shared/types.h>

namespace pumice {

inline constexpr int kPoolThreads = 256;

enum class Pool : int32_t {
  sum,
  average,
  max,
  // Gradients, on the tiles of the transposed map:
  average_gradient,   // Σ g[o] / inputs[o]
  max_gradient,       // Σ g[o] where the input is the one that o has chosen
};

/// out[o] from in[i] over the pairs of a map's tiles, in ascending order of offset.
struct PoolArguments {
  TileMapRef map;
  const void* in = nullptr;    // [in_rows, channels]
  void* out = nullptr;         // [out_rows, channels]
  int32_t* argmax = nullptr;   // max: [out_rows, channels] the chosen row; -1 where there is none
  const int32_t* chosen = nullptr;   // max_gradient: [in_rows, channels]
  const float* inputs = nullptr;     // average_gradient: [in_rows]
  int32_t channels = 0;
  ElementType type = ElementType::f32;
  Pool pool = Pool::sum;
};

/// How many inputs each output has.
struct CountInputsArguments {
  TileMapRef map;
  float* inputs = nullptr;   // [out_rows]
};

}   // namespace pumice
