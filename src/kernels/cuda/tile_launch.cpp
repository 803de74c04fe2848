// One launch a product.
#include "kernels/cuda/tile_launch.hpp"

#include <source_location>

#include <pumice/core/error.hpp>

#include "jit/dependent_launch.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {

ElementType storage_element(DType type) {
  switch (type) {
    case DType::f32: return ElementType::f32;
    case DType::f16: return ElementType::f16;
    case DType::bf16: return ElementType::bf16;
    default: break;
  }
  detail::raise_internal(std::source_location::current(), "kernels on a device do not take ",
                         name_of(type));
}

const jit::Source& source_of(const TileSpec& spec) {
  static SourceTable<TileSpec, SpecHash<TileSpec>> sources;
  return sources.get(spec, [](const TileSpec& wanted) {
    return jit::Source{
        .name = tile_name(wanted), .text = tile_source(wanted), .writes_only_features = true};
  });
}

void launch_tiles(jit::KernelRunner& runner, const TileSpec& spec, const TileArguments& arguments) {
  const std::int64_t tiles =
      spec.gather == Gather::identity
          ? (arguments.map.out_rows.capacity + spec.tile_rows - 1) / spec.tile_rows
          : arguments.map.tiles.capacity;
  TileArguments passed = arguments;
  passed.reads_ahead = jit::may_read_ahead(runner.stream());
  runner.run({&source_of(spec), kTileKernel},
             {.blocks = tile_blocks(spec, tiles, multiprocessors_of(runner.stream())),
              .blocks_y = spec.groups * column_tiles(spec),
              .threads = threads(spec),
              .shared_bytes = shared_bytes(spec)},
             passed);
}

}   // namespace pumice::cuda
