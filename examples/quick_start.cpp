// A simulated LiDAR sweep through MinkUNet42: points, voxels, scores.
#include <iostream>

#include <pumice/nn/networks.hpp>
#include <pumice/points/simulate.hpp>
#include <pumice/points/voxelize.hpp>

int main() {
  using namespace pumice;
  const PointCloud sweep = simulate({.seed = 1});   // or read_points("scan.bin")
  const Voxels voxels = voxelize(sweep, point_features(sweep), {.size = {0.05f, 0.05f, 0.05f}});

  const auto network = nn::make_network("minkunet42", {.seed = 7});   // untrained weights
  network->eval();
  nn::fold(*network);   // batch norms, residuals and activations run inside the convolutions

  nn::Profile profile;
  nn::Context context{.profile = &profile};
  const nn::SparseTensor scores =
      network->forward({CoordinateSet::create(voxels.coordinates), voxels.features}, context);

  std::cout << sweep.size() << " points, " << scores.rows() << " voxels, " << scores.channels()
            << " scores each; " << profile.gflop() << " GFLOP in " << profile.total_ms() << " ms\n";
}
