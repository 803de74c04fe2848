// Pooling over the tiles of a kernel map. Arguments are checked by the caller; everything is
// enqueued on the stream of `runner`.
#pragma once

#include <pumice/ops/pool_arguments.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// Positions of the tiles that pooling takes: what most convolutions take too.
inline constexpr std::int32_t kPoolTileRows = 128;

/// sum, average or max; `argmax`: i32, of max alone. One launch.
void pool(jit::KernelRunner& runner, Pool pool, const TileMapRef& tiles, ConstTensorView features,
          TensorView output, TensorView argmax = {});
/// `transposed`: tiles of the inputs. One launch.
void max_pool_gradient(jit::KernelRunner& runner, const TileMapRef& transposed,
                       ConstTensorView grad_output, ConstTensorView argmax,
                       TensorView grad_features);
/// Two launches; `tiles` are those of the outputs.
void average_pool_gradient(jit::KernelRunner& runner, const TileMapRef& tiles,
                           const TileMapRef& transposed, ConstTensorView grad_output,
                           TensorView grad_features);

}   // namespace pumice::cuda
