// Kernel maps of a simulated sweep at five levels of detail, as MinkUNet42 sees it: 0.05 m voxels,
// each level twice as coarse as the one before.
#pragma once

#include <array>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>
#include <pumice/core/random.hpp>
#include <pumice/core/tensor.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

namespace pumice::bench {

/// 3³ submanifold maps of levels 0 to 4. Made once.
inline const std::vector<KernelMapPtr>& street_levels() {
  static const std::vector<KernelMapPtr> levels = [] {
    const PointCloud cloud = simulate({});
    const Voxels voxels =
        voxelize(cloud, point_features(cloud), {.size = {0.05f, 0.05f, 0.05f}, .range = {}});
    std::vector<KernelMapPtr> maps;
    CoordinateSetPtr set = CoordinateSet::create(voxels.coordinates.view());
    KernelWindow halving;
    halving.size = axes(3, 2);
    halving.stride = axes(3, 2);
    for (int level = 0; level < 5; ++level) {
      if (level > 0) set = strided_set(set, halving, StridedOutputs::cell);
      maps.push_back(submanifold_map(set, submanifold_window(3, axes(3, 3), axes(3, 1))));
    }
    return maps;
  }();
  return levels;
}

/// A convolution of the network at one of those levels.
struct Layer {
  int level, in_channels, out_channels;
};

/// The distinct 3³ layers of MinkUNet42 with the `spvnas` widths, and the two single layers that
/// other systems publish (32 and 96 channels at the finest level).
inline constexpr std::array kLayers{Layer{0, 4, 32},    Layer{0, 32, 32},   Layer{0, 96, 96},
                                    Layer{0, 128, 96},  Layer{1, 32, 32},   Layer{1, 96, 96},
                                    Layer{1, 128, 96},  Layer{2, 32, 64},   Layer{2, 64, 64},
                                    Layer{2, 192, 128}, Layer{2, 128, 128}, Layer{3, 64, 128},
                                    Layer{3, 128, 128}, Layer{3, 384, 256}, Layer{3, 256, 256},
                                    Layer{4, 128, 256}, Layer{4, 256, 256}};

inline Tensor random_tensor(Shape shape, DType dtype, std::uint64_t seed) {
  Tensor values(shape, DType::f32);
  Random random(seed);
  for (float& value : values.span<float>())
    value = static_cast<float>(random.uniform(-1, 1));
  return values.to(dtype);
}

}   // namespace pumice::bench
