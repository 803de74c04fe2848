// Distinct coordinates by sorting keys.
#include <pumice/coords/unique.hpp>

#include <pumice/core/radix_sort.hpp>

#include "coords/cpu/coordinate_set_builder.hpp"
#include "coords/cpu/key_list.hpp"
#include "coords/cpu/key_runs.hpp"
#include "coords/cuda/from_coordinates.hpp"

namespace pumice {

UniqueCoordinates unique_coordinates(ConstTensorView coordinates,
                                     const CoordinateOptions& options) {
  if (coordinates.device().kind == DeviceKind::cuda)
    return cuda::unique_coordinates(coordinates, options);
  KeyList list = encode_coordinates(coordinates, options);
  Buffer<std::int32_t> order = identity_order(list.keys.size());
  radix_sort_pairs(list.keys.span(), order.span(), key_bits(list.layout));
  KeyRuns runs = find_runs(list.keys.span(), order.span());
  return {CoordinateSetBuilder::build(std::move(runs.keys), {}, {}, list.layout, list.batch_size,
                                      options),
          std::move(runs.run_of), std::move(runs.first)};
}

}   // namespace pumice
