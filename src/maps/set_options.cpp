// Strides and shapes of coarser and of finer sets.
#include "maps/set_options.hpp"

#include "coords/cpu/coarsen.hpp"

namespace pumice {

CoordinateOptions strided_options(const CoordinateSet& in, const KernelWindow& window) {
  CoordinateOptions options = coarser_options(in, window.stride);
  if (in.spatial_shape()) options.spatial_shape = strided_shape(*in.spatial_shape(), window);
  return options;
}

CoordinateOptions generated_options(const CoordinateSet& coarse, const KernelWindow& window) {
  CoordinateOptions options = coarse.options();
  options.bounds.reset();
  for (std::size_t at = 0; at < static_cast<std::size_t>(window.dimension); ++at) {
    const bool divides = options.stride[at] % window.stride[at] == 0;
    options.stride[at] = divides ? options.stride[at] / window.stride[at] : 1;
  }
  if (coarse.spatial_shape())
    options.spatial_shape = transposed_shape(*coarse.spatial_shape(), window);
  return options;
}

}   // namespace pumice
