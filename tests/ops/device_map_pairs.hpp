// The same kernel map on the CPU and on a device, row for row.
#pragma once

#include <pumice/maps/build.hpp>

#include "ops/device_support.hpp"

namespace pumice::test {

inline KernelWindow cube(std::int32_t size, std::int32_t stride) {
  KernelWindow window{.size = axes(3, size), .stride = axes(3, stride)};
  if (stride == 1) window.padding = axes(3, size / 2);
  return window;
}

struct MapPair {
  KernelMapPtr cpu;
  KernelMapPtr gpu;
};

/// The same map on both sides, with the rows of the CPU's output set on the device too.
inline MapPair submanifold_pair(std::int64_t rows, StreamView stream) {
  const CoordinateSetPtr set = chance_set(rows, 3);
  return {submanifold_map(set, cube(3, 1)),
          submanifold_map(CoordinateSet::copy_to(set, stream), cube(3, 1))};
}

inline MapPair strided_pair(std::int64_t rows, bool transposed, StreamView stream) {
  const CoordinateSetPtr fine = chance_set(rows, 5);
  const CoordinateSetPtr coarse = strided_set(fine, cube(2, 2), StridedOutputs::cell);
  const CoordinateSetPtr gpu_fine = CoordinateSet::copy_to(fine, stream);
  const CoordinateSetPtr gpu_coarse = CoordinateSet::copy_to(coarse, stream);
  if (transposed)
    return {transposed_map(coarse, fine, cube(2, 2)),
            transposed_map(gpu_coarse, gpu_fine, cube(2, 2))};
  return {map_between(fine, coarse, cube(2, 2)), map_between(gpu_fine, gpu_coarse, cube(2, 2))};
}

}   // namespace pumice::test
