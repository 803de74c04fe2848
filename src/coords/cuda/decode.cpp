// The launch that takes keys apart.
#include "coords/cuda/decode.hpp"

#include <pumice/coords/decode_arguments.h>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

void decode_coordinates(jit::KernelRunner& runner, const DeviceSet& set, TensorView coordinates) {
  const CoordinateSetRef ref = set.ref();
  const std::int64_t rows = coordinates.rows();
  runner.run(coords_kernel("decode_coordinates"),
             {.blocks = (rows + kDecodeThreads - 1) / kDecodeThreads, .threads = kDecodeThreads},
             DecodeArguments{.rows = ref.rows,
                             .layout = ref.layout,
                             .keys = ref.keys,
                             .order = ref.order,
                             .coordinates = coordinates.data<std::int32_t>()});
}

}   // namespace pumice::cuda
