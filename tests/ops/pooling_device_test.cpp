// Pooling on a CUDA device, the same calls as on the CPU, forward and backward.
// Covers pooling on a device.
#include <cmath>

#include <gtest/gtest.h>

#include <pumice/maps/build.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/pooling.hpp>

#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

const KernelWindow kHalves{.size = axes(3, 2), .stride = axes(3, 2)};

void expect_pooling(const KernelMapView& cpu, const KernelMapView& gpu, DType type,
                    StreamView stream) {
  const Tensor x = chance_tensor({cpu.in_rows, 20}, type, 1);
  const Tensor dy = chance_tensor({cpu.out_rows, 20}, type, 2);
  const Tensor gpu_x = copy_to(stream, x);
  const Tensor gpu_dy = copy_to(stream, dy);
  const MaxPooled expected = max_pool(x, cpu);
  const MaxPooled actual = max_pool(gpu_x, gpu);
  expect_agrees(actual.output, expected.output, 0, 0, "max");
  expect_agrees(actual.argmax, expected.argmax, 0, 0, "argmax");
  expect_agrees(max_pool_gradient(gpu_dy, actual.argmax, gpu),
                max_pool_gradient(dy, expected.argmax, cpu), 0, 0, "gradient of max");
  expect_agrees(sum_pool(gpu_x, gpu), sum_pool(x, cpu), 0, 0, "sum");
  expect_agrees(sum_pool_gradient(gpu_dy, gpu), sum_pool_gradient(dy, cpu), 0, 0,
                "gradient of sum");
  expect_agrees(average_pool(gpu_x, gpu), average_pool(x, cpu), 2, 1, "average");
  expect_agrees(average_pool_gradient(gpu_dy, gpu), average_pool_gradient(dy, cpu), 54, 1,
                "gradient of average");
}

TEST(PoolingGpu, agrees_with_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  for (const std::int64_t rows : {0, 1, 33, 20011}) {
    const CoordinateSetPtr set = chance_set(rows, 7);
    const CoordinateSetPtr coarse = strided_set(set, kHalves, StridedOutputs::cell);
    const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
    const CoordinateSetPtr gpu_coarse = CoordinateSet::copy_to(coarse, stream);
    for (const DType type : kDeviceTypes) {
      expect_pooling(submanifold_map(set, cube)->view(), submanifold_map(gpu_set, cube)->view(),
                     type, stream);
      expect_pooling(map_between(set, coarse, kHalves)->view(),
                     map_between(gpu_set, gpu_coarse, kHalves)->view(), type, stream);
    }
  }
}

TEST(GlobalPoolingGpu, agrees_with_the_cpu) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 1, 33, 65537}) {
    const CoordinateSetPtr set = chance_set(rows, 7);
    const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
    // A sum of so many terms of either sign, of which a thread adds a few hundred in fp32.
    const double count = 4 * std::sqrt(static_cast<double>(rows)) + 1;
    for (const DType type : kDeviceTypes) {
      const Tensor x = chance_tensor({rows, 20}, type, 1);
      const Tensor dy = chance_tensor({set->batch_size(), 20}, type, 2);
      const Tensor dx = chance_tensor({rows, 20}, type, 3);
      const Tensor wide = chance_tensor({rows, 27}, type, 4);
      const Tensor gpu_x = copy_to(stream, x);
      const Tensor gpu_dy = copy_to(stream, dy);
      const GlobalMaxPooled expected = global_max_pool(x, *set);
      const GlobalMaxPooled actual = global_max_pool(gpu_x, *gpu_set);
      expect_agrees(actual.output, expected.output, 0, 0, "max");
      expect_agrees(actual.argmax, expected.argmax, 0, 0, "argmax");
      expect_agrees(global_max_pool_gradient(gpu_dy, actual.argmax, *gpu_set),
                    global_max_pool_gradient(dy, expected.argmax, *set), 0, 0, "gradient of max");
      expect_agrees(global_sum_pool(gpu_x, *gpu_set), global_sum_pool(x, *set), 64, count, "sum");
      expect_agrees(global_average_pool(gpu_x, *gpu_set), global_average_pool(x, *set), 64, 1,
                    "average");
      expect_agrees(global_average_pool_gradient(gpu_dy, *gpu_set),
                    global_average_pool_gradient(dy, *set), 2, 1, "gradient of average");
      expect_agrees(broadcast(gpu_dy, *gpu_set), broadcast(dy, *set), 0, 0, "broadcast");
      expect_agrees(broadcast_add(gpu_x, gpu_dy, *gpu_set), broadcast_add(x, dy, *set), 0, 0,
                    "add");
      expect_agrees(broadcast_multiply(gpu_x, gpu_dy, *gpu_set), broadcast_multiply(x, dy, *set), 0,
                    0, "multiply");
      expect_agrees(broadcast_concatenate(gpu_x, gpu_dy, *gpu_set),
                    broadcast_concatenate(x, dy, *set), 0, 0, "concatenate");
      const BroadcastGradients products =
          broadcast_multiply_gradient(gpu_x, gpu_dy, copy_to(stream, dx), *gpu_set);
      const BroadcastGradients on_cpu = broadcast_multiply_gradient(x, dy, dx, *set);
      expect_agrees(products.features, on_cpu.features, 0, 0, "gradient of the features");
      expect_agrees(products.items, on_cpu.items, 64, count, "gradient of the items");
      const BroadcastGradients parts =
          broadcast_concatenate_gradient(copy_to(stream, wide), 20, *gpu_set);
      expect_agrees(parts.items, broadcast_concatenate_gradient(wide, 20, *set).items, 64, count,
                    "gradient of what was appended");
    }
  }
}

}   // namespace
}   // namespace pumice
