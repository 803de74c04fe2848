// Puts a coordinate set together once its keys are sorted.
#pragma once

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

struct CoordinateSetBuilder {
  /// `keys` ascend and are distinct. `order` maps rank to row and may be empty when they are equal;
  /// `coordinates` are in row order and may be undefined, then they are decoded from the keys.
  static CoordinateSetPtr build(Buffer<std::uint64_t> keys, Buffer<std::int32_t> order,
                                Tensor coordinates, const KeyLayout& layout,
                                std::int32_t batch_size, const CoordinateOptions& options);
};

}   // namespace pumice
