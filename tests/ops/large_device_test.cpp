// Sizes past 2^31 on a CUDA device with 80 GB or more. They take a minute each, so they are asked
// for: PUMICE_LARGE=1.
// Covers convolution, sets and maps on a device.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <mutex>

#include <gtest/gtest.h>

#include <pumice/core/cuda.hpp>
#include <pumice/core/half.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/maps/build.hpp>
#include <pumice/ops/activation.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>
#include <pumice/ops/rows.hpp>
#include <pumice/points/voxelize.hpp>

#include "coords/cuda/voxelize.hpp"
#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

constexpr std::int64_t kChannels = 64;

/// Skips where it was not asked for, or the device is too small.
#define PUMICE_NEEDS_LARGE(gigabytes)                                                         \
  PUMICE_NEEDS_GPU();                                                                         \
  if (std::getenv("PUMICE_LARGE") == nullptr)                                                 \
    GTEST_SKIP() << "set PUMICE_LARGE=1 to run this on a device of " << (gigabytes) << " GB"; \
  if (cuda_device_info(kGpu.index).memory_bytes < std::int64_t{gigabytes} * 1'000'000'000)    \
  GTEST_SKIP() << "needs a device of " << (gigabytes) << " GB"

std::uint64_t mixed(std::uint64_t x) {   // splitmix64: every bit depends on all of x
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

/// A value that both sides can work out from its place alone: k/256, which f16 holds exactly.
float value_at(std::int64_t row, std::int64_t column, std::uint64_t what) {
  const std::uint64_t word =
      mixed(static_cast<std::uint64_t>(row * kChannels + column) ^ what << 56);
  return static_cast<float>(static_cast<int>(word >> 55) - 256) / 256;
}

/// [rows, kChannels] f16 on a device, a piece at a time.
Tensor values_on_device(std::int64_t rows, std::uint64_t what, StreamView stream) {
  Tensor all({rows, kChannels}, DType::f16, stream);
  constexpr std::int64_t kPiece = 1 << 20;
  for (std::int64_t begin = 0; begin < rows; begin += kPiece) {
    const std::int64_t count = std::min(kPiece, rows - begin);
    Tensor piece({count, kChannels}, DType::f16);
    Half* const values = piece.data<Half>();
    parallel_for(count, 4096, [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t row = from; row < to; ++row) {
        for (std::int64_t c = 0; c < kChannels; ++c)
          values[row * kChannels + c] = narrow<Half>(value_at(begin + row, c, what));
      }
    });
    copy_async(static_cast<std::byte*>(all.raw()) + begin * kChannels * 2, stream.device,
               piece.raw(), {}, piece.bytes(), stream);
  }
  return all;
}

/// `count` of the cells of boxes of `side`³ about zero, one for each of two batch items; rows are
/// not in the order of keys.
Tensor sites_of_a_box(std::int64_t count, std::int32_t side) {
  const std::int64_t cells = 2ll * side * side * side;
  Tensor coordinates({count, 4}, DType::i32);
  // A cell is in when its turn falls on a whole number: `count` of them, evenly everywhere.
  parallel_for(cells, 1 << 20, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t cell = from; cell < to; ++cell) {
      const std::int64_t row = cell * count / cells;
      const std::int64_t next = (cell + 1) * count / cells;
      if (row == next) continue;
      std::int32_t* const at = coordinates.data<std::int32_t>() + 4 * row;
      const std::int64_t x = cell % side * 37 % side;
      at[0] = static_cast<std::int32_t>(cell / side / side / side);
      at[1] = static_cast<std::int32_t>(x) - side / 2;
      at[2] = static_cast<std::int32_t>(cell / side % side) - side / 2;
      at[3] = static_cast<std::int32_t>(cell / side / side % side) - side / 2;
    }
  });
  return coordinates;
}

/// Rows worth a look: the ends, those around 2^31 elements, and some by chance.
std::vector<std::int64_t> rows_to_check(std::int64_t rows, int by_chance) {
  std::vector<std::int64_t> chosen;
  for (const std::int64_t edge : {std::int64_t{0}, (std::int64_t{1} << 31) / kChannels,
                                  (std::int64_t{1} << 30) / kChannels, rows - 1}) {
    for (std::int64_t row = edge - 20; row <= edge + 20; ++row) {
      if (row >= 0 && row < rows) chosen.push_back(row);
    }
  }
  Random random(5);
  for (int i = 0; i < by_chance; ++i)
    chosen.push_back(random.integer(0, rows - 1));
  return chosen;
}

/// Rows of a tensor on a device, by number.
Tensor rows_of(const Tensor& tensor, const std::vector<std::int64_t>& rows) {
  Tensor result({static_cast<std::int64_t>(rows.size()), kChannels}, DType::f16);
  const std::size_t bytes = kChannels * 2;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    copy_async(
        static_cast<std::byte*>(result.raw()) + i * bytes, {},
        static_cast<const std::byte*>(tensor.raw()) + static_cast<std::size_t>(rows[i]) * bytes,
        tensor.device(), bytes, tensor.stream());
  }
  wait(tensor.stream());
  return result;
}

/// Elements that are not finite, of all.
std::int64_t not_finite(const Tensor& tensor) {
  std::int64_t count = 0;
  constexpr std::int64_t kPiece = 1 << 22;
  for (std::int64_t begin = 0; begin < tensor.rows(); begin += kPiece) {
    const std::int64_t rows = std::min(kPiece, tensor.rows() - begin);
    const ConstTensorView piece(static_cast<const std::byte*>(tensor.raw()) + begin * kChannels * 2,
                                DType::f16, {rows, kChannels}, tensor.stream());
    const Tensor host = copy_to_host(piece, tensor.stream());
    const auto* const words = static_cast<const std::uint16_t*>(host.raw());
    std::atomic<std::int64_t> found{0};
    parallel_for(host.elements(), 1 << 20, [&](std::int64_t from, std::int64_t to) {
      found += std::count_if(words + from, words + to,
                             [](std::uint16_t word) { return (word & 0x7c00) == 0x7c00; });
    });
    count += found;
  }
  return count;
}

/// A 3³ submanifold convolution of values that follow from their place, some rows in float64.
void expect_convolution(const CoordinateSet& host_set, const KernelMapPtr& map, StreamView stream) {
  const std::int64_t rows = host_set.size();
  const Tensor x = values_on_device(rows, 1, stream);
  const Tensor weight = values_on_device(27 * kChannels, 2, stream);
  const ConstTensorView cube(weight.raw(), DType::f16, {27, kChannels, kChannels}, stream);
  const Tensor y = convolution(x, cube, map->view());
  EXPECT_EQ(not_finite(y), 0);
  const std::vector<std::int64_t> chosen = rows_to_check(rows, 500);
  const Tensor actual = rows_of(y, chosen).to(DType::f64);
  const auto* const sites = host_set.coordinates().data<std::int32_t>();
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    std::vector<double> sum(kChannels), magnitude(kChannels);
    const std::int32_t* const site = sites + 4 * chosen[i];
    for (int k = 0; k < 27; ++k) {
      const std::int32_t neighbour[] = {site[0], site[1] + k / 9 - 1, site[2] + k / 3 % 3 - 1,
                                        site[3] + k % 3 - 1};
      const std::int32_t row = host_set.find(neighbour);
      if (row < 0) continue;
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const double value = static_cast<double>(value_at(row, c, 1));
        for (std::int64_t n = 0; n < kChannels; ++n) {
          const double term = value * static_cast<double>(value_at(k * kChannels + c, n, 2));
          sum[static_cast<std::size_t>(n)] += term;
          magnitude[static_cast<std::size_t>(n)] += std::abs(term);
        }
      }
    }
    for (std::size_t n = 0; n < sum.size(); ++n) {
      // One rounding to f16, and sums of 27 · 64 terms whose last bits are cut off.
      const double bound = 0x1p-11 * std::abs(sum[n]) + 1800 * 0x1p-23 * magnitude[n] + 0x1p-25;
      ASSERT_NEAR(actual.data<double>()[i * kChannels + n], sum[n], bound)
          << "row " << chosen[i] << ", channel " << n;
    }
  }
}

TEST(LargeGpu, forty_million_rows_of_64_channels) {
  PUMICE_NEEDS_LARGE(80);
  const Stream stream(kGpu);
  constexpr std::int64_t kRows = 40'000'000;
  static_assert(kRows * kChannels > std::int64_t{1} << 31);
  const auto host_set = CoordinateSet::create(sites_of_a_box(kRows, 380));
  ASSERT_EQ(host_set->size(), kRows);
  const auto set = CoordinateSet::copy_to(host_set, stream);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  expect_convolution(*host_set, submanifold_map(set, window), stream);
  std::cout << "peak " << cuda_memory_use(kGpu.index).peak_bytes / 1'000'000'000 << " GB\n";
}

/// Points of which each has a cell to itself, on the device, become the cells that the CPU makes.
TEST(LargeGpu, twenty_million_voxels_from_points_to_a_convolution) {
  PUMICE_NEEDS_LARGE(80);
  const Stream stream(kGpu);
  constexpr std::int64_t kPoints = 24'000'000;
  constexpr float kSize = 0.05F;
  Tensor positions({kPoints, 3}, DType::f32);
  parallel_for(kPoints, 1 << 18, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t i = from; i < to; ++i) {
      for (std::int64_t axis = 0; axis < 3; ++axis) {
        const std::uint64_t word = mixed(static_cast<std::uint64_t>(3 * i + axis));
        positions.data<float>()[3 * i + axis] =
            static_cast<float>(static_cast<double>(word >> 11) * 0x1p-53 * 20 - 10);   // 400 cells
      }
    }
  });
  PointCloud cloud;
  cloud.positions = positions;
  const Voxels expected = voxelize(cloud, positions, {.size = {kSize, kSize, kSize}});
  ASSERT_GT(expected.size(), 18'000'000);

  jit::DeviceRunner runner(stream, default_allocator(kGpu));
  const auto host_set = CoordinateSet::create(expected.coordinates);
  const Tensor device_positions = copy_to(stream, positions);
  const cuda::DeviceVoxels voxels =
      cuda::voxelize(runner,
                     {.positions = device_positions.data<float>(),
                      .count = {nullptr, kPoints},
                      .features = device_positions.data<float>(),
                      .channels = 3},
                     {.size = {kSize, kSize, kSize},
                      .layout = host_set->layout(),
                      .capacities = {cuda::capacity_for_rows(kPoints)}});
  EXPECT_EQ(copy_to_host(voxels.sets[0].rows().count, 1, stream)[0], expected.size());
  EXPECT_EQ(copy_to_host(voxels.point_to_voxel.data(), 1, stream)[0],
            expected.point_to_voxel.data<std::int64_t>()[0]);
  const auto features = copy_to_host(voxels.features.data(), expected.size() * 3, stream);
  EXPECT_EQ(std::memcmp(features.data(), expected.features.raw(), expected.features.bytes()), 0);

  const auto set = CoordinateSet::copy_to(host_set, stream);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  expect_convolution(*host_set, submanifold_map(set, window), stream);
}

/// Operators that go through all rows one by one or sum them up.
TEST(LargeGpu, rows_times_channels_past_two_to_the_31_in_every_walk_over_rows) {
  PUMICE_NEEDS_LARGE(80);
  const Stream stream(kGpu);
  constexpr std::int64_t kRows = 34'000'000;
  static_assert(kRows * kChannels > std::int64_t{1} << 31);
  const std::vector<std::int64_t> chosen = rows_to_check(kRows, 2000);
  const Tensor x = values_on_device(kRows, 1, stream);
  const Tensor z = values_on_device(kRows, 3, stream);
  const auto expect_rows = [&](const Tensor& result, auto&& expected, const char* what) {
    const Tensor actual = rows_of(result, chosen).to(DType::f32);
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        ASSERT_EQ(actual.data<float>()[static_cast<std::int64_t>(i) * kChannels + c],
                  expected(chosen[i], c))
            << what << ", row " << chosen[i] << ", channel " << c;
      }
    }
  };
  expect_rows(
      add(x, z), [](auto row, auto c) { return value_at(row, c, 1) + value_at(row, c, 3); }, "sum");
  expect_rows(
      activate(x, Activation::relu),
      [](auto row, auto c) { return std::max(value_at(row, c, 1), 0.0F); }, "activation");
  Tensor backwards({kRows}, DType::i32);
  for (std::int64_t row = 0; row < kRows; ++row)
    backwards.data<std::int32_t>()[row] = static_cast<std::int32_t>(kRows - 1 - row);
  const Tensor order = copy_to(stream, backwards);
  const auto backwards_value = [](auto row, auto c) { return value_at(kRows - 1 - row, c, 1); };
  expect_rows(take_rows(x, order), backwards_value, "taken rows");
  expect_rows(scatter_rows(x, order, kRows), backwards_value, "scattered rows");

  // Sums of all rows: of whole multiples of 1/256, so these are exact.
  std::vector<double> sum(kChannels), product(kChannels);
  std::mutex mutex;
  parallel_for(kRows, 1 << 18, [&](std::int64_t from, std::int64_t to) {
    std::vector<double> part(kChannels), part_product(kChannels);
    for (std::int64_t row = from; row < to; ++row) {
      for (std::int64_t c = 0; c < kChannels; ++c) {
        const auto at = static_cast<std::size_t>(c);
        const auto value = static_cast<double>(value_at(row, c, 1));
        part[at] += value;
        part_product[at] += value * static_cast<double>(value_at(row, c, 3));
      }
    }
    const std::lock_guard lock(mutex);
    for (std::size_t c = 0; c < sum.size(); ++c) {
      sum[c] += part[c];
      product[c] += part_product[c];
    }
  });
  // 34 million terms of about 1/2, of which threads and blocks have shares: 2^-24 of their sum for
  // each of at most 200,000 additions in a row.
  constexpr double kSlack = 0x1p-24 * 2e5 * kRows / 2;
  const Tensor sums = back(bias_gradient(x));
  const Tensor products =
      back(linear_weight_gradient(x, z, {.numerics = {.deterministic = true}})).to(DType::f64);
  Tensor running_mean = Tensor::zeros({kChannels}, DType::f32, stream);
  Tensor running_variance = Tensor::zeros({kChannels}, DType::f32, stream);
  const Tensor one = Tensor::full({kChannels}, DType::f32, 1, stream);
  const Tensor zero = Tensor::zeros({kChannels}, DType::f32, stream);
  const Normalized norm =
      batch_norm_training(x, one, zero, running_mean.view(), running_variance.view());
  const Tensor mean = back(norm.mean);
  EXPECT_EQ(not_finite(norm.output), 0);
  for (std::int64_t c = 0; c < kChannels; ++c) {
    const auto at = static_cast<std::size_t>(c);
    EXPECT_NEAR(static_cast<double>(sums.data<float>()[c]), sum[at], kSlack) << c;
    EXPECT_NEAR(static_cast<double>(mean.data<float>()[c]), sum[at] / kRows, kSlack / kRows) << c;
    EXPECT_NEAR(products.data<double>()[c * kChannels + c], product[at],
                kSlack + 0x1p-11 * std::abs(product[at]))
        << c;
  }
}

}   // namespace
}   // namespace pumice
