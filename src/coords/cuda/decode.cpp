// The launch that takes keys apart.
#include "coords/cuda/decode.hpp"

#include <pumice/coords/decode_arguments.h>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

Tensor decode_coordinates(jit::KernelRunner& runner, const DeviceSet& set, std::int64_t rows) {
  const CoordinateSetRef ref = set.ref();
  Tensor coordinates({rows, 1 + ref.layout.dimension}, DType::i32, runner.stream(),
                     runner.allocator());
  runner.run(coords_kernel("decode_coordinates"),
             {.blocks = (rows + kDecodeThreads - 1) / kDecodeThreads, .threads = kDecodeThreads},
             DecodeArguments{.rows = ref.rows,
                             .layout = ref.layout,
                             .keys = ref.keys,
                             .order = ref.order,
                             .coordinates = static_cast<std::int32_t*>(coordinates.raw())});
  return coordinates;
}

}   // namespace pumice::cuda
