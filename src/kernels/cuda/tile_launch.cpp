// Sources are made once a specification.
#include "kernels/cuda/tile_launch.hpp"

#include <deque>
#include <mutex>
#include <source_location>
#include <utility>

#include <pumice/core/cuda.hpp>
#include <pumice/core/error.hpp>

#include "kernels/cuda/tile_source.hpp"

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
  static std::mutex mutex;
  static std::deque<std::pair<TileSpec, jit::Source>> sources;   // addresses stay
  const std::scoped_lock lock(mutex);
  for (const auto& [known, source] : sources) {
    if (known == spec) return source;
  }
  sources.emplace_back(spec, jit::Source{.name = tile_name(spec), .text = tile_source(spec)});
  return sources.back().second;
}

void launch_tiles(jit::KernelRunner& runner, const TileSpec& spec, const TileArguments& arguments) {
  const std::int64_t tiles =
      spec.gather == Gather::identity
          ? (arguments.map.out_rows.capacity + spec.tile_rows - 1) / spec.tile_rows
          : arguments.map.tiles.capacity;
  const Device device = runner.stream().device;
  const int multiprocessors =
      device.kind == DeviceKind::cuda ? cuda_device_info(device.index).multiprocessors : 1;
  runner.run({&source_of(spec), kTileKernel},
             {.blocks = tile_blocks(spec, tiles, multiprocessors),
              .blocks_y = spec.groups * column_tiles(spec),
              .threads = threads(spec),
              .shared_bytes = shared_bytes(spec)},
             arguments);
}

}   // namespace pumice::cuda
