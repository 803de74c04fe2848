// A real scan: levels and maps of a whole network, voxel for voxel and pair for pair those of the
// CPU.
// Covers create_sets, set_operations and cut_maps on a recorded scan.
#include <gtest/gtest.h>

#include <pumice/coords/set_operations.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/points/read.hpp>
#include <pumice/points/voxelize.hpp>

#include "device/device_maps.hpp"
#include "device/device_sets.hpp"
#include "support/data.hpp"

namespace pumice::test {
namespace {

constexpr std::size_t kLevels = 5;

PUMICE_LARGE_DEVICE_TEST(DeviceRealScan, ANetworksMapsAreThoseOfTheCpu) {
  PUMICE_NEEDS_DATA(path, "lidar/semantickitti/seq00_000000.bin");
  const PointCloud cloud = read_points(path.string());
  const Tensor coordinates =
      voxelize(cloud, point_features(cloud), {.size = {0.05f, 0.05f, 0.05f}}).coordinates;
  std::vector<CoordinateSetPtr> levels = {CoordinateSet::create(coordinates, {.batch_size = 1})};
  while (levels.size() < kLevels)
    levels.push_back(coarsen(*levels.back(), axes(3, 2)));

  const auto runner = make_runner();
  const auto created = create_on_device(*runner, *levels[0], kLevels, cuda::Repeats::refuse, 1000);
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  KernelWindow half;
  half.size = axes(3, 2);
  half.stride = axes(3, 2);
  const cuda::DeviceWindow cube_on_device(*runner, cube);
  const cuda::DeviceWindow half_on_device(*runner, half);
  std::vector<cuda::CutRequest> requests;
  std::vector<KernelMapPtr> cpu;
  for (std::size_t k = 0; k < kLevels; ++k) {
    expect_same_set(created.sets[k].ref(), *levels[k]);
    const auto here = created.sets[k].ref();
    requests.push_back({{here, here, &cube_on_device, Reach::out_to_in},
                        cuda::TileOptions{},
                        cuda::PairOptions{}});
    cpu.push_back(submanifold_map(levels[k], cube));
    if (k + 1 == kLevels) break;
    const auto next = created.sets[k + 1].ref();
    requests.push_back({{here, next, &half_on_device, Reach::out_to_in}, cuda::TileOptions{}});
    cpu.push_back(map_between(levels[k], levels[k + 1], half));
    requests.push_back({{next, here, &half_on_device, Reach::in_to_out}, cuda::TileOptions{}});
    cpu.push_back(transposed_map(levels[k + 1], levels[k], half));
  }
  const auto maps = cuda::cut_maps(*runner, requests);
  EXPECT_EQ(runner->record().code, kFine);
  for (std::size_t i = 0; i < maps.size(); ++i) {
    SCOPED_TRACE(i);
    expect_same_map(maps[i], cpu[i]->view(), 1);
  }
}

}   // namespace
}   // namespace pumice::test
