// The occupied cells of dense arrays, found by device code, beside those that the CPU finds.
// Covers occupied of src/ops/cuda.
#include "ops/cuda/occupied.hpp"

#include <limits>

#include <gtest/gtest.h>

#include <pumice/ops/dense.hpp>

#include "device/device_tensors.hpp"
#include "kernels/problem.hpp"

namespace pumice::test {
namespace {

/// Values of which most are zero, some of them negative.
Tensor sparse_array(const Shape& shape, DType type, double share, std::uint64_t seed) {
  Tensor values(shape, DType::f64);
  Random random(seed, 3);
  for (double& value : values.span<double>()) {
    const double drawn = random.uniform();
    value = drawn < share ? drawn - 0.5 : drawn < 0.5 ? 0.0 : -0.0;
  }
  return values.to(type);
}

void expect_same_sites(TestRunner& runner, const Tensor& dense, const Tensor& mask,
                       const Axes& low) {
  SCOPED_TRACE(to_string(dense.shape()));
  FromDenseOptions options{.low = low};
  if (mask.defined()) options.mask = mask;
  const SparseRows expected = from_dense(dense, options);
  const int dimension = static_cast<int>(dense.shape().rank()) - 2;
  DensePlacement grid{.dimension = dimension};
  for (int axis = 0; axis < dimension; ++axis) {
    grid.low[axis] = low[static_cast<std::size_t>(axis)];
    grid.shape[axis] = static_cast<std::int32_t>(dense.extent(axis + 2));
  }
  const DeviceTensor there(runner, dense);
  const DeviceTensor marks(runner, mask.defined() ? mask : Tensor({0}, DType::u8));
  cuda::OccupiedCells cells(runner, there.view(),
                            mask.defined() ? ConstTensorView(marks.view()) : ConstTensorView{},
                            grid);
  ASSERT_EQ(*cells.count(), expected.set->size());
  const DeviceTensor coordinates(runner, Shape{*cells.count(), dimension + 1}, DType::i32);
  if (*cells.count() > 0) cells.write(runner, coordinates.view());
  EXPECT_TRUE(same_bits(coordinates.host(), expected.set->coordinates()));
}

PUMICE_DEVICE_TEST(OccupiedCells, AreThoseOfTheCpu) {
  const auto runner = make_runner();
  for (const DType type : {DType::f64, DType::f32, DType::f16, DType::bf16}) {
    expect_same_sites(*runner, sparse_array({2, 3, 5, 7, 9}, type, 0.2, 1), {}, {-3, 4, 0, 0});
    expect_same_sites(*runner, sparse_array({1, 1, 33}, type, 0.5, 2), {}, {});
    expect_same_sites(*runner, sparse_array({3, 2, 17, 31}, type, 0.01, 3), {}, {1, -40, 0, 0});
    expect_same_sites(*runner, sparse_array({2, 4, 3, 4, 5, 6}, type, 0.1, 4), {},
                      {-1, -1, -1, -1});
  }
}

PUMICE_DEVICE_TEST(OccupiedCells, OfAnyNumberAndNone) {
  const auto runner = make_runner();
  for (const std::int64_t cells : {0, 1, 31, 32, 33, 255, 257, 3000}) {
    expect_same_sites(*runner, sparse_array({1, 2, cells}, DType::f32, 0.5, 5), {}, {});
    expect_same_sites(*runner, sparse_array({1, 2, cells}, DType::f32, 0, 6), {}, {});
    expect_same_sites(*runner, sparse_array({1, 2, cells}, DType::f32, 1, 7), {}, {});
  }
}

PUMICE_DEVICE_TEST(OccupiedCells, FollowAMask) {
  const auto runner = make_runner();
  Tensor mask({2, 6, 7}, DType::u8);
  Random random(8, 1);
  for (std::uint8_t& mark : mask.span<std::uint8_t>())
    mark = random.uniform() < 0.3 ? static_cast<std::uint8_t>(random.integer(1, 255)) : 0;
  expect_same_sites(*runner, sparse_array({2, 3, 6, 7}, DType::f16, 0.5, 9), mask, {-2, 0, 0, 0});
}

PUMICE_DEVICE_TEST(OccupiedCells, TakeNanForAValue) {
  const auto runner = make_runner();
  Tensor dense = Tensor::zeros({1, 2, 40}, DType::f32);
  dense.data<float>()[7] = std::numeric_limits<float>::quiet_NaN();
  dense.data<float>()[40 + 39] = std::numeric_limits<float>::denorm_min();
  expect_same_sites(*runner, dense, {}, {});
}

}   // namespace
}   // namespace pumice::test
