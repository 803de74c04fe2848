// Building kernel maps, and the coordinate sets they lead to.
#pragma once

#include <pumice/maps/kernel_map.hpp>

namespace pumice {

/// Which output sites a strided convolution has.
enum class StridedOutputs : unsigned char {
  dilating,   // every output cell that any offset reaches (spconv)
  cell,       // one for each occupied coarse cell (MinkowskiEngine, TorchSparse)
};

/// Outputs are the inputs. `window.stride` must be 1.
KernelMapPtr submanifold_map(const CoordinateSetPtr& set, const KernelWindow& window);

/// The pairs of `window` between two given sets: any output sites the caller likes.
KernelMapPtr map_between(const CoordinateSetPtr& in, const CoordinateSetPtr& out,
                         const KernelWindow& window);

/// A convolution that makes its own output sites; the result's `out()` holds them. Where the input
/// has a spatial shape, outputs are cut to `strided_shape`.
KernelMapPtr strided_map(const CoordinateSetPtr& in, const KernelWindow& window,
                         StridedOutputs outputs);

/// The output sites of a strided convolution alone.
CoordinateSetPtr strided_set(const CoordinateSetPtr& in, const KernelWindow& window,
                             StridedOutputs outputs);

/// A transposed convolution onto given finer sites: fine = coarse · stride − padding + offset ·
/// dilation. The map's `in()` is coarse and its `out()` is fine.
KernelMapPtr transposed_map(const CoordinateSetPtr& coarse, const CoordinateSetPtr& fine,
                            const KernelWindow& window);

/// A transposed convolution onto every finer site it reaches. Its outputs have the stride of
/// `coarse` divided by the window's; where that is no whole number they are a new finest level, 1.
KernelMapPtr generative_map(const CoordinateSetPtr& coarse, const KernelWindow& window);

}   // namespace pumice
