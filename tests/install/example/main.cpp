// Pumice from outside: a simulated sweep, its voxels, who meets whom, and one convolution.
#include <iostream>

#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

int main() {
  using namespace pumice;
  const PointCloud cloud = simulate({.seed = 1});
  const Voxels voxels = voxelize(cloud, point_features(cloud), {.size = {0.05f, 0.05f, 0.05f}});
  const CoordinateSetPtr sites = CoordinateSet::create(voxels.coordinates);
  const KernelMapPtr map = submanifold_map(sites, submanifold_window(3, axes(3, 3), axes(3, 1)));
  const Tensor weight = Tensor::full({27, 4, 32}, DType::f32, 0.01);
  const Tensor result = convolution(voxels.features, weight, map->view());
  std::cout << cloud.size() << " points, " << result.rows() << " voxels, " << map->pairs()
            << " pairs, " << result.extent(1) << " channels\n";
  return result.rows() == voxels.size() && map->pairs() > voxels.size() ? 0 : 1;
}
