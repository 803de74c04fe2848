// Norms and sums over rows, the sequences of launches that a device executes, beside the CPU's.
// Covers src/ops/cuda/columns.cpp and items.cpp: norms, their gradients, sums of batch items.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <pumice/ops/global_pooling.hpp>
#include <pumice/ops/linear.hpp>
#include <pumice/ops/normalization.hpp>

#include "device/device_mirror.hpp"
#include "device/device_tensors.hpp"
#include "ops/cuda/columns.hpp"
#include "ops/cuda/items.hpp"
#include "ops/ops_support.hpp"

namespace pumice::test {
namespace {

constexpr DType kStorages[] = {DType::f32, DType::f16, DType::bf16};

struct Size {
  std::int64_t rows;
  std::int64_t channels;
};
/// Chunks of four columns and of one, tiles of columns, full and not, shares of which some are
/// empty.
constexpr Size kShapes[] = {{0, 5},    {2, 1},     {31, 33},  {33, 64}, {700, 4},
                            {900, 96}, {5000, 32}, {3, 1030}, {5, 2052}};

/// Far from 0, where a variance from sums of squares in fp32 would be noise.
Tensor distant(const Size& size, DType type, std::uint64_t seed) {
  return chance_tensor({size.rows, size.channels}, type, seed, 30, 32);
}

/// Welford's recurrence and the tree round once a row on the way to a share's moments; a few
/// hundred rows at most.
constexpr double kWork = 64;

struct Parameters {
  Parameters(const TestRunner& runner, std::int64_t channels)
      : weight(chance_tensor({channels}, DType::f32, 91, 0.5, 1.5)),
        bias(chance_tensor({channels}, DType::f32, 92)),
        gpu_weight(runner, weight),
        gpu_bias(runner, bias) {}
  Tensor weight, bias;
  DeviceTensor gpu_weight, gpu_bias;
};

struct Gradients {
  Gradients(const TestRunner& runner, const Tensor& features)
      : of_features(runner, features.shape(), features.dtype()),
        weight(runner, {features.extent(1)}, DType::f32),
        bias(runner, {features.extent(1)}, DType::f32) {}
  cuda::NormGradientViews views() const { return {of_features.view(), weight.view(), bias.view()}; }
  void expect(const NormGradients& expected, double rows) const {
    // Centered values are rounded at the size of what they are centered from: 32 · 1.7 deviations.
    expect_like(of_features, expected.features, kWork, 64, "gradient of the features");
    expect_like(weight, expected.weight, kWork, 8 * rows, "gradient of the weight");
    expect_like(bias, expected.bias, kWork, rows, "gradient of the bias");
  }
  DeviceTensor of_features, weight, bias;
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

cuda::OwnStatistics own_statistics(const DeviceTensor& mean, const DeviceTensor& deviation) {
  return {.mean = mean.view(), .inverse_deviation = deviation.view(), .epsilon = kNormEpsilon};
}

PUMICE_LARGE_DEVICE_TEST(DeviceNorms, TrainABatchNorm) {
  for (const Size& size : kShapes) {
    for (const DType type : kStorages) {
      const auto runner = make_runner();
      const Tensor x = distant(size, type, 1);
      const Tensor dy = chance_tensor(x.shape(), type, 2);
      const Parameters parameters(*runner, size.channels);
      Tensor running_mean = chance_tensor({size.channels}, DType::f32, 3);
      Tensor running_variance = chance_tensor({size.channels}, DType::f32, 4, 0.5, 1);
      Tensor batches({1}, DType::i64);
      *batches.data<std::int64_t>() = 41;
      const DeviceTensor gpu_running_mean(*runner, running_mean);
      const DeviceTensor gpu_running_variance(*runner, running_variance);
      const DeviceTensor gpu_batches(*runner, batches);
      const Normalized expected = batch_norm_training(x, parameters.weight, parameters.bias,
                                                      running_mean.view(), running_variance.view(),
                                                      {.momentum = 0.3, .batches = batches.view()});
      EXPECT_EQ(*batches.data<std::int64_t>(), size.rows > 0 ? 42 : 41);
      const DeviceTensor gpu_x(*runner, x);
      const DeviceTensor mean(*runner, {size.channels}, DType::f32);
      const DeviceTensor deviation(*runner, {size.channels}, DType::f32);
      const DeviceTensor y(*runner, x.shape(), type);
      const RowItems rows = cuda::all_rows(gpu_x.view());
      cuda::OwnStatistics own = own_statistics(mean, deviation);
      own.running = {gpu_running_mean.view(), gpu_running_variance.view(), gpu_batches.view(), 0.3};
      cuda::normalize_by_own(*runner, rows, gpu_x.view(), own, parameters.gpu_weight.view(),
                             parameters.gpu_bias.view(), y.view());
      EXPECT_EQ(runner->launches().size(), 2u);
      EXPECT_TRUE(same_bits(gpu_batches.host(), batches));
      expect_like(mean, expected.mean, kWork, 1, "mean");
      // Of two rows the deviation can be small, and its inverse up to 1 / sqrt(epsilon).
      const double steep = size.rows < 10 ? 320 : 4;
      if (size.rows >= 10 || size.rows == 0) {
        expect_like(deviation, expected.inverse_deviation, kWork, steep, "inverse deviation");
        expect_like(gpu_running_variance, running_variance, kWork, 1, "running variance");
        expect_like(y, expected.output, kWork, 64, "output");
        const DeviceTensor given(*runner, x.shape(), type);
        cuda::normalize(*runner, rows, gpu_x.view(), mean.view(), deviation.view(),
                        parameters.gpu_weight.view(), parameters.gpu_bias.view(), given.view());
        EXPECT_TRUE(same_bits(given.host(), y.host()));
      }
      expect_like(gpu_running_mean, running_mean, kWork, 32, "running mean");

      const DeviceTensor cpu_mean(*runner, expected.mean);
      const DeviceTensor cpu_deviation(*runner, expected.inverse_deviation);
      const DeviceTensor gpu_dy(*runner, dy);
      for (const bool constant : {false, true}) {
        if (size.rows < 10 && !constant) continue;
        const Gradients gradients(*runner, x);
        const std::size_t before = runner->launches().size();
        cuda::normalize_gradient(*runner, rows, gpu_x.view(), gpu_dy.view(), cpu_mean.view(),
                                 cpu_deviation.view(), parameters.gpu_weight.view(), constant,
                                 gradients.views());
        EXPECT_EQ(runner->launches().size(), before + 2);
        if (!constant) {
          gradients.expect(batch_norm_training_gradient(x, dy, parameters.weight, expected.mean,
                                                        expected.inverse_deviation),
                           static_cast<double>(size.rows));
        } else if (size.rows >= 10) {
          Tensor variance(expected.mean.shape(), DType::f32);
          for (std::int64_t c = 0; c < size.channels; ++c) {
            const double s = static_cast<double>(expected.inverse_deviation.data<float>()[c]);
            variance.data<float>()[c] = static_cast<float>(1 / (s * s) - kNormEpsilon);
          }
          gradients.expect(
              batch_norm_inference_gradient(x, dy, expected.mean, variance, parameters.weight),
              static_cast<double>(size.rows));
        }
      }
    }
  }
}

/// Of the features' type: the same bits as of the same numbers in fp32, rounded where written.
PUMICE_DEVICE_TEST(DeviceNorms, ReadAndWriteParametersOfTheFeaturesType) {
  for (const Size& size : {Size{31, 33}, {900, 36}}) {
    for (const DType type : {DType::f16, DType::bf16}) {
      const auto runner = make_runner();
      const Shape channels{size.channels};
      const Tensor x = distant(size, type, 1);
      const Tensor dy = chance_tensor(x.shape(), type, 2);
      const DeviceTensor gpu_x(*runner, x), gpu_dy(*runner, dy);
      const RowItems rows = cuda::all_rows(gpu_x.view());
      std::vector<Tensor> made[2];
      for (const bool wide : {true, false}) {
        const auto parameter = [&](std::uint64_t seed) {
          const Tensor narrow = chance_tensor(channels, type, seed, 0.5, 1);
          return DeviceTensor(*runner, wide ? narrow.to(DType::f32) : narrow);
        };
        const DeviceTensor weight = parameter(91), bias = parameter(92);
        const DeviceTensor running_mean = parameter(93), running_variance = parameter(94);
        const DeviceTensor mean(*runner, channels, DType::f32);
        const DeviceTensor deviation(*runner, channels, DType::f32);
        const DeviceTensor y(*runner, x.shape(), type), dx(*runner, x.shape(), type);
        cuda::OwnStatistics own = own_statistics(mean, deviation);
        own.running = {running_mean.view(), running_variance.view(), {}, 0.3};
        cuda::normalize_by_own(*runner, rows, gpu_x.view(), own, weight.view(), bias.view(),
                               y.view());
        const DType kind = weight.view().dtype();
        const DeviceTensor of_weight(*runner, channels, kind), of_bias(*runner, channels, kind);
        cuda::normalize_gradient(*runner, rows, gpu_x.view(), gpu_dy.view(), mean.view(),
                                 deviation.view(), weight.view(), false,
                                 {dx.view(), of_weight.view(), of_bias.view()});
        made[wide] = {y.host(), dx.host()};
        for (const DeviceTensor* one : {&running_mean, &running_variance, &of_weight, &of_bias})
          made[wide].push_back(one->host().to(type));
      }
      for (std::size_t i = 0; i < made[0].size(); ++i)
        EXPECT_TRUE(same_bits(made[0][i], made[1][i])) << name_of(type) << ", result " << i;
    }
  }
}

PUMICE_DEVICE_TEST(DeviceNorms, CountEveryBatchAndMoveEveryTime) {
  const auto runner = make_runner();
  const Tensor x = distant({2100, 36}, DType::f16, 1);
  Tensor running_mean({36}, DType::f32), running_variance({36}, DType::f32),
      batches({1}, DType::i64);
  for (Tensor* tensor : {&running_mean, &running_variance, &batches})
    std::memset(tensor->raw(), 0, tensor->bytes());
  const DeviceTensor gpu_x(*runner, x), gpu_batches(*runner, batches);
  const DeviceTensor gpu_mean(*runner, running_mean), gpu_variance(*runner, running_variance);
  Tensor first;
  for (int i = 0; i < 3; ++i) {
    const DeviceTensor mean(*runner, {36}, DType::f32), deviation(*runner, {36}, DType::f32);
    const DeviceTensor y(*runner, x.shape(), DType::f16);
    cuda::OwnStatistics own = own_statistics(mean, deviation);
    own.running = {gpu_mean.view(), gpu_variance.view(), gpu_batches.view(), 0.1};
    cuda::normalize_by_own(*runner, cuda::all_rows(gpu_x.view()), gpu_x.view(), own, {}, {},
                           y.view());
    batch_norm_training(x, {}, {}, running_mean.view(), running_variance.view(),
                        {.batches = batches.view()});
    if (i == 0) first = y.host();
    EXPECT_TRUE(same_bits(y.host(), first));
  }
  EXPECT_EQ(*gpu_batches.host().data<std::int64_t>(), 3);
  EXPECT_EQ(*batches.data<std::int64_t>(), 3);
  expect_like(gpu_mean, running_mean, kWork, 32, "running mean");
  expect_like(gpu_variance, running_variance, kWork, 1, "running variance");
}

/// Rows of one value have no variance, and the first row may be far from all others.
PUMICE_DEVICE_TEST(DeviceNorms, KeepTheDigitsOfValuesFarFromEachOther) {
  const auto runner = make_runner();
  Tensor x({1500, 8}, DType::f32);
  for (std::int64_t i = 0; i < x.elements(); ++i)
    x.data<float>()[i] = i % 8 == 0 ? 7.25f : i < 8 ? 1e6f : static_cast<float>(i / 8 % 5);
  const DeviceTensor gpu_x(*runner, x);
  const DeviceTensor mean(*runner, {8}, DType::f32), deviation(*runner, {8}, DType::f32);
  const DeviceTensor y(*runner, x.shape(), DType::f32);
  cuda::normalize_by_own(*runner, cuda::all_rows(gpu_x.view()), gpu_x.view(),
                         own_statistics(mean, deviation), {}, {}, y.view());
  const Normalized expected = batch_norm_training(x, {}, {}, {}, {});
  EXPECT_EQ(mean.host().data<float>()[0], 7.25f);
  EXPECT_EQ(deviation.host().data<float>()[0], static_cast<float>(1 / std::sqrt(kNormEpsilon)));
  expect_like(mean, expected.mean, kWork, 700, "mean");
  for (std::int64_t c = 1; c < 8; ++c) {
    const double want = static_cast<double>(expected.inverse_deviation.data<float>()[c]);
    EXPECT_NEAR(static_cast<double>(deviation.host().data<float>()[c]), want, want * 1e-5);
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceNorms, NormalizeSingleRows) {
  for (const Size& size : {Size{0, 5}, {1, 1}, {31, 33}, {33, 64}, {9, 260}}) {
    for (const DType type : kStorages) {
      const auto runner = make_runner();
      const Tensor x = chance_tensor({size.rows, size.channels}, type, 1, 2, 4);
      const Tensor dy = chance_tensor(x.shape(), type, 2);
      const Parameters parameters(*runner, size.channels);
      const Normalized expected = layer_norm(x, parameters.weight, parameters.bias);
      const DeviceTensor gpu_x(*runner, x);
      const DeviceTensor gpu_dy(*runner, dy);
      const DeviceTensor y(*runner, x.shape(), type);
      const DeviceTensor mean(*runner, {size.rows}, DType::f32);
      const DeviceTensor deviation(*runner, {size.rows}, DType::f32);
      cuda::layer_norm(*runner, cuda::all_rows(gpu_x.view()).rows, gpu_x.view(),
                       parameters.gpu_weight.view(), parameters.gpu_bias.view(), kNormEpsilon,
                       y.view(), mean.view(), deviation.view());
      expect_like(mean, expected.mean, kWork, 4, "mean");
      expect_like(deviation, expected.inverse_deviation, kWork, 8, "inverse deviation");
      expect_like(y, expected.output, kWork, 8, "output");
      const Gradients gradients(*runner, x);
      cuda::layer_norm_gradient(*runner, cuda::all_rows(gpu_x.view()).rows, gpu_x.view(),
                                gpu_dy.view(), parameters.gpu_weight.view(), mean.view(),
                                deviation.view(), gradients.views());
      gradients.expect(
          layer_norm_gradient(x, dy, parameters.weight, expected.mean, expected.inverse_deviation),
          static_cast<double>(size.rows) + 1);
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceNorms, NormalizeEveryBatchItem) {
  for (const std::int64_t rows : {40, 500}) {
    const CoordinateSetPtr set = chance_set(rows, 7);   // items 2 and 4 are empty
    for (const DType type : kStorages) {
      for (const std::int64_t channels : {5, 8}) {
        const auto runner = make_runner();
        const Mirror mirror(*runner, set);
        CoordinateSetRef ref = mirror.ref();
        const cuda::SetItems items(*runner, ref, set->batch_size());
        const Tensor x = distant({rows, channels}, type, 1);
        const Tensor dy = chance_tensor(x.shape(), type, 2);
        const Parameters parameters(*runner, channels);
        const Normalized expected = instance_norm(x, *set, parameters.weight, parameters.bias);
        const DeviceTensor gpu_x(*runner, x);
        const DeviceTensor gpu_dy(*runner, dy);
        const DeviceTensor y(*runner, x.shape(), type);
        const DeviceTensor mean(*runner, expected.mean.shape(), DType::f32);
        const DeviceTensor deviation(*runner, expected.mean.shape(), DType::f32);
        cuda::OwnStatistics own = own_statistics(mean, deviation);
        own.empty = EmptyItem::zero;
        cuda::normalize_by_own(*runner, items.rows(), gpu_x.view(), own,
                               parameters.gpu_weight.view(), parameters.gpu_bias.view(), y.view());
        expect_like(mean, expected.mean, kWork, 1, "mean");
        expect_like(deviation, expected.inverse_deviation, kWork, 8, "inverse deviation");
        expect_like(y, expected.output, kWork, 64, "output");
        const Gradients gradients(*runner, x);
        cuda::normalize_gradient(*runner, items.rows(), gpu_x.view(), gpu_dy.view(), mean.view(),
                                 deviation.view(), parameters.gpu_weight.view(), false,
                                 gradients.views());
        gradients.expect(instance_norm_gradient(x, dy, *set, parameters.weight, expected.mean,
                                                expected.inverse_deviation),
                         static_cast<double>(rows));
      }
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceSums, AddRows) {
  for (const Size& size : kShapes) {
    for (const DType type : kStorages) {
      const auto runner = make_runner();
      const Tensor x = chance_tensor({size.rows, size.channels}, type, 1);
      const DeviceTensor gpu_x(*runner, x);
      const DeviceTensor sums(*runner, {size.channels}, DType::f32);
      cuda::sum_items(*runner, cuda::all_rows(gpu_x.view()), gpu_x.view(), false, sums.view());
      expect_like(sums, linear_bias_gradient(x), kWork, static_cast<double>(size.rows), "sums");
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DeviceSums, AddRowsAndProductsOfEveryBatchItem) {
  const std::int64_t rows = 500;
  const CoordinateSetPtr set = chance_set(rows, 7);
  for (const DType type : kStorages) {
    const auto runner = make_runner();
    const Mirror mirror(*runner, set);
    const cuda::SetItems items(*runner, mirror.ref(), set->batch_size());
    const Tensor x = chance_tensor({rows, 12}, type, 1);
    const Tensor y = chance_tensor({rows, 12}, type, 2);
    const Tensor item = chance_tensor({set->batch_size(), 12}, type, 3);
    const DeviceTensor gpu_x(*runner, x);
    const DeviceTensor gpu_y(*runner, y);
    const DeviceTensor result(*runner, item.shape(), type);
    cuda::sum_items(*runner, items.rows(), gpu_x.view(), false, result.view());
    expect_like(result, global_sum_pool(x, *set), kWork, 200, "sum");
    cuda::sum_items(*runner, items.rows(), gpu_x.view(), true, result.view());
    expect_like(result, global_average_pool(x, *set), kWork, 1, "average");
    cuda::sum_products(*runner, items.rows(), gpu_x.view(), gpu_y.view(), result.view());
    expect_like(result, broadcast_multiply_gradient(x, item, y, *set).items, kWork, 200,
                "sum of products");
  }
}

PUMICE_DEVICE_TEST(DeviceNorms, PassPoisonOn) {
  const auto runner = make_runner();
  const Tensor x = chance_tensor({9, 8}, DType::f16, 1);
  const DeviceTensor gpu_x(*runner, x);
  const DeviceTensor y(*runner, x);
  const auto count = runner->count(10);
  RowItems rows = cuda::all_rows(gpu_x.view());
  rows.rows.count = count.data();
  const DeviceTensor mean(*runner, chance_tensor({8}, DType::f32, 2));
  const DeviceTensor deviation(*runner, chance_tensor({8}, DType::f32, 3));
  cuda::normalize_by_own(*runner, rows, gpu_x.view(), own_statistics(mean, deviation), {}, {},
                         y.view());
  for (const DeviceTensor* tensor : {&mean, &deviation, &y}) {
    const Tensor values = tensor->host().to(DType::f32);
    for (const float value : values.span<float>())
      ASSERT_TRUE(std::isnan(value));
  }
}

PUMICE_DEVICE_TEST(DeviceNorms, StopAtTheRowsInUse) {
  const auto runner = make_runner();
  const Tensor x = distant({100, 12}, DType::f32, 1);
  Tensor used({64, 12}, DType::f32);
  std::memcpy(used.raw(), x.raw(), used.bytes());
  const DeviceTensor gpu_x(*runner, x);
  const DeviceTensor y(*runner, {100, 12}, DType::f32);
  const auto count = runner->count(64);
  RowItems rows = cuda::all_rows(gpu_x.view());
  rows.rows.count = count.data();
  const DeviceTensor mean(*runner, {12}, DType::f32);
  const DeviceTensor deviation(*runner, {12}, DType::f32);
  cuda::normalize_by_own(*runner, rows, gpu_x.view(), own_statistics(mean, deviation), {}, {},
                         y.view());
  const Normalized expected = batch_norm_training(used, {}, {}, {}, {});
  expect_like(mean, expected.mean, kWork, 1, "mean");
  expect_like(deviation, expected.inverse_deviation, kWork, 4, "inverse deviation");
  const Tensor written = y.host();
  for (std::int64_t i = 0; i < 1200; ++i)
    ASSERT_EQ(std::isnan(written.data<float>()[i]), i >= 768) << i;
}

}   // namespace
}   // namespace pumice::test
