// The launch that takes keys apart.
#include "coords/cuda/decode.hpp"

#include <pumice/coords/decode_arguments.h>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

void decode_coordinates(jit::KernelRunner& runner, const CoordinateSetRef& set,
                        TensorView coordinates) {
  const std::int64_t rows = coordinates.rows();
  runner.run(coords_kernel("decode_coordinates"),
             {.blocks = (rows + kDecodeThreads - 1) / kDecodeThreads, .threads = kDecodeThreads},
             DecodeArguments{.rows = set.rows,
                             .layout = set.layout,
                             .keys = set.keys,
                             .order = set.order,
                             .coordinates = coordinates.data<std::int32_t>()});
}

}   // namespace pumice::cuda
