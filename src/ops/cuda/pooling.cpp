// One thread block a tile.
#include "ops/cuda/pooling.hpp"

#include "ops/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

PoolArguments arguments_of(Pool pool, const TileMapRef& tiles, const ConstTensorView& in,
                           const TensorView& out) {
  return {.map = tiles,
          .in = in.raw(),
          .out = out.raw(),
          .channels = static_cast<std::int32_t>(in.extent(1)),
          .type = element_type(in.dtype(), "pooling", "features"),
          .pool = pool};
}

jit::LaunchShape tile_each(const TileMapRef& tiles) {
  return {.blocks = tiles.tiles.capacity, .threads = kPoolThreads};
}

void run(jit::KernelRunner& runner, const PoolArguments& arguments) {
  if (arguments.channels == 0) return;
  runner.run(ops_kernel("pool_tiles"), tile_each(arguments.map), arguments);
}

}   // namespace

void pool(jit::KernelRunner& runner, Pool pool, const TileMapRef& tiles, ConstTensorView features,
          TensorView output, TensorView argmax) {
  PoolArguments arguments = arguments_of(pool, tiles, features, output);
  if (argmax.defined()) arguments.argmax = argmax.data<std::int32_t>();
  run(runner, arguments);
}

void max_pool_gradient(jit::KernelRunner& runner, const TileMapRef& transposed,
                       ConstTensorView grad_output, ConstTensorView argmax,
                       TensorView grad_features) {
  PoolArguments arguments =
      arguments_of(Pool::max_gradient, transposed, grad_output, grad_features);
  arguments.chosen = argmax.data<std::int32_t>();
  run(runner, arguments);
}

void average_pool_gradient(jit::KernelRunner& runner, const TileMapRef& tiles,
                           const TileMapRef& transposed, ConstTensorView grad_output,
                           TensorView grad_features) {
  auto inputs = runner.make<float>(grad_output.rows());
  runner.run(ops_kernel("count_inputs"), tile_each(tiles),
             CountInputsArguments{.map = tiles, .inputs = inputs.data()});
  PoolArguments arguments =
      arguments_of(Pool::average_gradient, transposed, grad_output, grad_features);
  arguments.inputs = inputs.data();
  run(runner, arguments);
}

}   // namespace pumice::cuda
