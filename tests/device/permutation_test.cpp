// Copies with axes in another order, as a device makes them, beside the CPU's.
// Covers src/ops/cuda/permutation.cpp.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <numeric>

#include <pumice/ops/permute_arguments.h>
#include <pumice/ops/permutation.hpp>

#include "device/device_tensors.hpp"
#include "ops/cuda/permutation.hpp"
#include "ops/ops_support.hpp"
#include "support/same_bits.hpp"

namespace pumice::test {
namespace {

/// The copies of one launch, or more, of tensors with NaN in what nobody has written.
void expect_as_on_the_cpu(const RunnerMaker& make_runner,
                          const std::vector<std::pair<Shape, AxisOrder>>& copies, DType type) {
  const auto runner = make_runner();
  std::vector<DeviceTensor> from, to;
  std::vector<Tensor> expected;
  std::vector<Permutation> on_device;
  from.reserve(copies.size());
  to.reserve(copies.size());
  for (const auto& [shape, order] : copies) {
    const Tensor source = chance_tensor(shape, type, 1 + expected.size());
    expected.emplace_back(Shape{shape.elements()}, type);
    permute(std::array{Permutation{source, order, expected.back().view()}});
    from.emplace_back(*runner, source);
    to.emplace_back(*runner, expected.back().shape(), type);
    on_device.push_back({from.back().view(), order, to.back().view()});
  }
  cuda::permute(*runner, on_device);
  for (std::size_t i = 0; i < copies.size(); ++i)
    EXPECT_TRUE(same_bits(to[i].host(), expected[i])) << to_string(copies[i].first);
}

PUMICE_LARGE_DEVICE_TEST(DevicePermute, BringsWeightsIntoTheOrderOfKernelsAndBack) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    // [out, kernel, in] to [kernel, in, out] and back, few channels and many.
    for (const auto& [in, out] : {std::pair{1, 1}, {4, 32}, {33, 31}, {64, 65}, {5, 2}}) {
      expect_as_on_the_cpu(make_runner, {{{out, 3, 3, 3, in}, {1, 2, 3, 4, 0}}}, type);
      expect_as_on_the_cpu(make_runner, {{{3, 3, 3, in, out}, {4, 0, 1, 2, 3}}}, type);
      // Offsets whose first axis runs fastest.
      expect_as_on_the_cpu(make_runner, {{{3, 2, 3, in, out}, {2, 1, 0, 3, 4}}}, type);
    }
  }
}

PUMICE_LARGE_DEVICE_TEST(DevicePermute, TakesAnyOrderOfAxes) {
  const Shape shape{2, 3, 5, 1, 4, 6};
  AxisOrder order{0, 1, 2, 3, 4, 5};
  std::vector<std::pair<Shape, AxisOrder>> copies;
  do {
    if (order[3] != 3) continue;   // an axis of extent 1 changes nothing
    copies.emplace_back(shape, order);
  } while (std::next_permutation(order.begin(), order.end()));
  EXPECT_GT(copies.size(), std::size_t{2 * kMostPermutations});
  expect_as_on_the_cpu(make_runner, copies, DType::f32);
  expect_as_on_the_cpu(make_runner, {{{0, 5}, {1, 0}}, {{}, {}}, {{1, 1}, {1, 0}}, {{7}, {0}}},
                       DType::f16);
  expect_as_on_the_cpu(make_runner, {{{65537, 3}, {1, 0}}, {{3, 4100}, {1, 0}}}, DType::f16);
}

PUMICE_DEVICE_TEST(DevicePermute, RefusesElementsOfOtherSizes) {
  const auto runner = make_runner();
  const DeviceTensor from(*runner, {3, 2}, DType::f64);
  const DeviceTensor to(*runner, {2, 3}, DType::f64);
  const Permutation copy{from.view(), {1, 0}, to.view()};
  expect_sentence([&] { cuda::permute(*runner, {&copy, 1}); }, {"f64", "2 or 4 bytes"});
}

}   // namespace
}   // namespace pumice::test
