// Pooling over maps and over batch items, the sequences of launches that a device executes, beside
// the CPU's.
// Covers src/ops/cuda/pooling.cpp, and what columns.cpp has for batch items.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <cmath>
#include <limits>

#include <pumice/maps/build.hpp>
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/pooling.hpp>

#include "device/device_mirror.hpp"
#include "device/device_tensors.hpp"
#include "formats/cuda/cut_maps.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/items.hpp"
#include "ops/cuda/pooling.hpp"
#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

/// Few different values, so that there are equals; and a NaN here and there.
Tensor values_with_ties(const Shape& shape, DType type, std::uint64_t seed) {
  Tensor result(shape, DType::f64);
  Random random(seed);
  for (double& value : result.span<double>()) {
    value = static_cast<double>(random.integer(-3, 3)) / 4;
    if (random.integer(0, 99) == 0) value = std::numeric_limits<double>::quiet_NaN();
  }
  return result.to(type);
}

/// Tiles of a map between two sets, in both directions.
struct Tiles {
  Tiles(TestRunner& runner, const KernelMap& map)
      : in(runner, map.in()), out(runner, map.out()), window(runner, map.window()) {
    const cuda::CutRequest requests[] = {
        {{in.ref(), out.ref(), &window, Reach::out_to_in}, cuda::TileOptions{}},
        {{out.ref(), in.ref(), &window, Reach::in_to_out}, cuda::TileOptions{}}};
    maps = cuda::cut_maps(runner, requests);
  }
  TileMapRef forward() const { return exact(maps[0].tiles(), in, out); }
  TileMapRef backward() const { return exact(maps[1].tiles(), out, in); }
  /// Mirrors have room for more rows than they hold; features here do not.
  static TileMapRef exact(TileMapRef tiles, const Mirror& in, const Mirror& out) {
    tiles.in_rows = {nullptr, in.set->size()};
    tiles.out_rows = {nullptr, out.set->size()};
    return tiles;
  }

  Mirror in, out;
  cuda::DeviceWindow window;
  std::vector<cuda::CutMap> maps;
};

void expect_pooling(TestRunner& runner, const KernelMap& map, std::int64_t channels, DType type) {
  const KernelMapView view = map.view();
  const Tiles tiles(runner, map);
  const Tensor x = values_with_ties({view.in_rows, channels}, type, 1);
  const Tensor dy = chance_tensor({view.out_rows, channels}, type, 2);
  const Tensor finite = chance_tensor(x.shape(), type, 3);
  const DeviceTensor gpu_x(runner, x);
  const DeviceTensor gpu_dy(runner, dy);
  const DeviceTensor gpu_finite(runner, finite);
  const DeviceTensor y(runner, dy.shape(), type);
  const DeviceTensor argmax(runner, dy.shape(), DType::i32);
  const DeviceTensor dx(runner, x.shape(), type);

  const MaxPooled expected = max_pool(x, view);
  cuda::pool(runner, Pool::max, tiles.forward(), gpu_x.view(), y.view(), argmax.view());
  expect_like(y, expected.output, 0, 0, "max");
  expect_like(argmax, expected.argmax, 0, 0, "argmax");
  cuda::max_pool_gradient(runner, tiles.backward(), gpu_dy.view(), argmax.view(), dx.view());
  expect_like(dx, max_pool_gradient(dy, expected.argmax, view), 0, 0, "gradient of max");

  cuda::pool(runner, Pool::sum, tiles.forward(), gpu_finite.view(), y.view());
  expect_like(y, sum_pool(finite, view), 0, 0, "sum");
  cuda::pool(runner, Pool::average, tiles.forward(), gpu_finite.view(), y.view());
  expect_like(y, average_pool(finite, view), 1, 1, "average");
  cuda::average_pool_gradient(runner, tiles.forward(), tiles.backward(), gpu_dy.view(), dx.view());
  expect_like(dx, average_pool_gradient(dy, view), 27, 1, "gradient of average");
}

PUMICE_LARGE_DEVICE_TEST(DevicePooling, PoolsOverEveryKindOfMap) {
  const KernelWindow halves{.size = axes(3, 2), .stride = axes(3, 2)};
  const KernelWindow cube = submanifold_window(3, axes(3, 3), axes(3, 1));
  for (const std::int64_t rows : {1, 33, 400}) {
    const CoordinateSetPtr set = chance_set(rows, 7);
    const CoordinateSetPtr coarse = strided_set(set, halves, StridedOutputs::cell);
    for (const DType type : kStorages) {
      for (const std::int64_t channels : {3, 8}) {
        const auto runner = make_runner();
        expect_pooling(*runner, *submanifold_map(set, cube), channels, type);
        expect_pooling(*runner, *map_between(set, coarse, halves), channels, type);
        // Outputs that no input meets.
        expect_pooling(*runner, *map_between(coarse, set, cube), channels, type);
      }
    }
  }
}

void expect_nan(const DeviceTensor& tensor) {
  const Tensor values = tensor.host().to(DType::f32);
  for (const float value : values.span<float>())
    ASSERT_TRUE(std::isnan(value));
}

PUMICE_DEVICE_TEST(DevicePooling, PassesPoisonOn) {
  const auto runner = make_runner();
  const CoordinateSetPtr set = chance_set(33, 7);
  const Tiles tiles(*runner, *submanifold_map(set, submanifold_window(3, axes(3, 3), axes(3, 1))));
  const auto count = runner->count(34);
  TileMapRef map = tiles.forward();
  map.in_rows.count = count.data();
  const Tensor x = chance_tensor({33, 8}, DType::f16, 1);
  const DeviceTensor gpu_x(*runner, x);
  const DeviceTensor y(*runner, x);
  const DeviceTensor argmax(*runner, x.shape(), DType::i32);
  cuda::pool(*runner, Pool::max, map, gpu_x.view(), y.view(), argmax.view());
  expect_nan(y);
  const Tensor chosen = argmax.host();
  for (const std::int32_t row : chosen.span<std::int32_t>())
    ASSERT_EQ(row, -1);

  RowItems rows{.rows = {count.data(), 33}};
  const DeviceTensor item(*runner, chance_tensor({1, 8}, DType::f16, 2));
  const DeviceTensor z(*runner, x);
  cuda::spread_items(*runner, rows, item.view(), gpu_x.view(), Spread::add, z.view());
  expect_nan(z);
  const DeviceTensor largest(*runner, item.host());
  const DeviceTensor from(*runner, {1, 8}, DType::i32);
  cuda::largest_of_items(*runner, rows, gpu_x.view(), largest.view(), from.view());
  expect_nan(largest);
  cuda::sum_items(*runner, rows, gpu_x.view(), false, item.view());
  expect_nan(item);
}

PUMICE_LARGE_DEVICE_TEST(DevicePooling, FindsTheLargestOfEveryBatchItem) {
  for (const std::int64_t rows : {0, 1, 33, 900}) {
    const CoordinateSetPtr set = chance_set(rows, 7);   // items 2 and 4 are empty
    for (const DType type : kStorages) {
      for (const std::int64_t channels : {3, 8}) {
        const auto runner = make_runner();
        const Mirror mirror(*runner, set);
        const cuda::SetItems items(*runner, mirror.ref(), set->batch_size());
        const Tensor x = values_with_ties({rows, channels}, type, 1);
        const GlobalMaxPooled expected = global_max_pool(x, *set);
        const DeviceTensor gpu_x(*runner, x);
        const DeviceTensor y(*runner, expected.output.shape(), type);
        const DeviceTensor argmax(*runner, expected.argmax.shape(), DType::i32);
        cuda::largest_of_items(*runner, items.rows(), gpu_x.view(), y.view(), argmax.view());
        expect_like(y, expected.output, 0, 0, "largest");
        expect_like(argmax, expected.argmax, 0, 0, "argmax");
        const Tensor dy = chance_tensor(expected.output.shape(), type, 2);
        const DeviceTensor gpu_dy(*runner, dy);
        const DeviceTensor dx(*runner, Tensor::zeros(x.shape(), type));
        cuda::scatter_chosen(*runner, gpu_dy.view(), argmax.view(), dx.view());
        expect_like(dx, global_max_pool_gradient(dy, expected.argmax, *set), 0, 0, "gradient");
      }
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DevicePooling, GivesRowsTheVectorOfTheirItem) {
  for (const std::int64_t rows : {0, 33, 900}) {
    const CoordinateSetPtr set = chance_set(rows, 7);
    for (const DType type : kStorages) {
      for (const std::int64_t channels : {3, 8}) {
        const auto runner = make_runner();
        const Mirror mirror(*runner, set);
        const cuda::SetItems items(*runner, mirror.ref(), set->batch_size());
        const Tensor x = chance_tensor({rows, channels}, type, 1);
        const Tensor vectors = chance_tensor({set->batch_size(), channels}, type, 2);
        const DeviceTensor gpu_x(*runner, x);
        const DeviceTensor gpu_vectors(*runner, vectors);
        const DeviceTensor y(*runner, x.shape(), type);
        const auto spread = [&](Spread how) {
          cuda::spread_items(*runner, items.rows(), gpu_vectors.view(), gpu_x.view(), how,
                             y.view());
        };
        spread(Spread::copy);
        expect_like(y, broadcast(vectors, *set), 0, 0, "copy");
        spread(Spread::average);
        expect_like(y, global_average_pool_gradient(vectors, *set), 1, 1, "average");
        spread(Spread::add);
        expect_like(y, broadcast_add(x, vectors, *set), 0, 0, "add");
        spread(Spread::multiply);
        expect_like(y, broadcast_multiply(x, vectors, *set), 0, 0, "multiply");
      }
    }
  }
}

}   // namespace
}   // namespace pumice::test
