// Rows moved, merged, joined on unions, interpolated and laid into dense arrays on a CUDA device,
// the same calls as on the CPU, forward and backward.
// Covers rows on a device.
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include <pumice/maps/build.hpp>
#include <pumice/ops/convolution.hpp>
#include <pumice/ops/dense.hpp>
#include <pumice/ops/elementwise.hpp>
#include <pumice/ops/interpolation.hpp>
#include <pumice/ops/rows.hpp>

#include "ops/device_support.hpp"

namespace pumice {
namespace {

using namespace test;

Tensor chance_rows(std::int64_t size, std::int64_t limit, std::uint64_t seed) {
  Tensor rows({size}, DType::i32);
  Random random(seed);
  for (std::int32_t& row : rows.span<std::int32_t>())
    row = static_cast<std::int32_t>(random.integer(-1, limit - 1));
  return rows;
}

TEST(RowsGpu, are_taken_scattered_and_merged) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const auto& [size, limit] :
       {std::pair<std::int64_t, std::int64_t>{0, 5}, {33, 31}, {65537, 9000}, {20011, 3}}) {
    const Tensor rows = chance_rows(size, limit, 1);
    const Tensor gpu_rows = copy_to(stream, rows);
    for (const DType type : kDeviceTypes) {
      const Tensor x = chance_tensor({size, 20}, type, 2);
      const Tensor table = chance_tensor({limit, 20}, type, 3);
      const Tensor gpu_x = copy_to(stream, x);
      const Tensor gpu_table = copy_to(stream, table);
      expect_agrees(take_rows(gpu_table, gpu_rows), take_rows(table, rows), 0, 0, "take");
      // fp32 on the CPU, over thousands of rows where there are few to fall into.
      expect_agrees(scatter_rows(gpu_x, gpu_rows, limit), scatter_rows(x, rows, limit), 256,
                    static_cast<double>(size) / static_cast<double>(limit), "scatter");
      for (const Reduction reduction :
           {Reduction::sum, Reduction::mean, Reduction::max, Reduction::first}) {
        const ReducedRows expected = reduce_rows(x, rows, limit, reduction);
        const ReducedRows actual = reduce_rows(gpu_x, gpu_rows, limit, reduction);
        expect_agrees(actual.output, expected.output, 1, 1, "reduction");
        if (expected.source.defined())
          expect_agrees(actual.source, expected.source, 0, 0, "source");
        expect_agrees(
            reduce_rows_gradient(gpu_table, gpu_rows,
                                 actual.source.defined() ? actual.source.view() : ConstTensorView{},
                                 reduction),
            reduce_rows_gradient(
                table, rows, expected.source.defined() ? expected.source.view() : ConstTensorView{},
                reduction),
            2, 1, "gradient");
      }
    }
  }
}

TEST(RowsGpu, join_on_the_union_of_two_sets) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 33, 5000}) {
    const CoordinateSetPtr left = chance_set(rows, 7);
    const CoordinateSetPtr right = chance_set(rows / 2, 8);
    const UnionSet cpu = unite(*left, *right);
    const UnionSet gpu{CoordinateSet::copy_to(cpu.set, stream), copy_to(stream, cpu.left_row),
                       copy_to(stream, cpu.right_row)};
    for (const DType type : kDeviceTypes) {
      const Tensor a = chance_tensor({rows, 20}, type, 1);
      const Tensor b = chance_tensor({rows / 2, 20}, type, 2);
      const Tensor c = chance_tensor({rows / 2, 3}, type, 3);
      const Tensor gpu_a = copy_to(stream, a);
      expect_agrees(add(gpu_a, copy_to(stream, b), gpu), add(a, b, cpu), 0, 0, "add");
      expect_agrees(concatenate(gpu_a, copy_to(stream, c), gpu), concatenate(a, c, cpu), 0, 0,
                    "concatenate");
      const Tensor dy = chance_tensor({cpu.set->size(), 23}, type, 4);
      const Tensor gpu_dy = copy_to(stream, dy);
      const UnionGradients sums = union_add_gradient(dy, cpu);
      const UnionGradients gpu_sums = union_add_gradient(gpu_dy, gpu);
      expect_agrees(gpu_sums.left, sums.left, 0, 0, "left of a sum");
      expect_agrees(gpu_sums.right, sums.right, 0, 0, "right of a sum");
      const UnionGradients parts = union_concatenate_gradient(dy, 20, cpu);
      const UnionGradients gpu_parts = union_concatenate_gradient(gpu_dy, 20, gpu);
      expect_agrees(gpu_parts.left, parts.left, 0, 0, "left columns");
      expect_agrees(gpu_parts.right, parts.right, 0, 0, "right columns");
    }
  }
}

TEST(RowsGpu, are_interpolated_at_points) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const CoordinateSetPtr set = chance_set(5000, 7);
  const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
  Tensor points = chance_tensor({20011, 4}, DType::f32, 1, -10, 10);
  for (std::int64_t p = 0; p < points.rows(); ++p)
    points.data<float>()[4 * p] = static_cast<float>(p % 5);
  const Tensor gpu_points = copy_to(stream, points);
  for (const Interpolation mode : {Interpolation::linear, Interpolation::nearest}) {
    for (const bool renormalize : {false, true}) {
      const InterpolationOptions options{.mode = mode, .renormalize = renormalize};
      const InterpolationMap expected = interpolation_map(*set, points, options);
      const InterpolationMap actual = interpolation_map(*gpu_set, gpu_points, options);
      expect_agrees(actual.rows, expected.rows, 0, 0, "rows");
      expect_agrees(actual.weights, expected.weights, 16, 1, "weights");
      for (const DType type : kDeviceTypes) {
        const Tensor x = chance_tensor({5000, 20}, type, 2);
        const Tensor dy = chance_tensor({20011, 20}, type, 3);
        expect_agrees(interpolate(copy_to(stream, x), actual), interpolate(x, expected), 32, 1,
                      "interpolation");
        expect_agrees(interpolate_gradient(copy_to(stream, dy), actual),
                      interpolate_gradient(dy, expected), 64, 8, "gradient");
      }
    }
  }
  points.data<float>()[5] = NAN;
  interpolation_map(*gpu_set, copy_to(stream, points));
  expect_sentence([&] { stream.wait(); }, {"interpolation_map: points", "1 of 20011"});
}

TEST(RowsGpu, go_to_dense_arrays_and_back) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const std::int64_t rows : {0, 33, 5000}) {
    const CoordinateSetPtr set = chance_set(rows, 7);
    const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
    for (const DType type : kDeviceTypes) {
      const Tensor x = chance_tensor({rows, 20}, type, 1);
      const Tensor gpu_x = copy_to(stream, x);
      const Tensor dense = to_dense(x, *set);
      const Tensor gpu_dense = to_dense(gpu_x, *gpu_set);
      expect_agrees(gpu_dense, dense, 0, 0, "dense");
      expect_agrees(to_dense_gradient(gpu_dense, *gpu_set), to_dense_gradient(dense, *set), 0, 0,
                    "back");
      expect_agrees(from_dense_gradient(gpu_x, *gpu_set, grid_of(*set)),
                    from_dense_gradient(x, *set, grid_of(*set)), 0, 0, "gradient of sparse rows");
      if (rows == 0) continue;
      const Tensor bev = to_bev(x, *set, 2);
      const Tensor gpu_bev = to_bev(gpu_x, *gpu_set, 2);
      expect_agrees(gpu_bev, bev, 0, 0, "BEV");
      expect_agrees(to_bev_gradient(gpu_bev, *gpu_set, 2), to_bev_gradient(bev, *set, 2), 0, 0,
                    "back from BEV");
      DenseGrid small = grid_of(*set);
      --small.shape[0];
      expect_agrees(to_dense(gpu_x, *gpu_set, {.grid = small, .crop = true}),
                    to_dense(x, *set, {.grid = small, .crop = true}), 0, 0, "cropped");
    }
  }
  const CoordinateSetPtr set = chance_set(100, 7);
  const CoordinateSetPtr gpu_set = CoordinateSet::copy_to(set, stream);
  DenseGrid small = grid_of(*set);
  --small.shape[0];
  to_dense(copy_to(stream, chance_tensor({100, 4}, DType::f32, 1)), *gpu_set, {.grid = small});
  expect_sentence([&] { stream.wait(); }, {"to_dense", "of 100"});
}

TEST(RowsGpu, become_another_type) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  for (const DType from : kDeviceTypes) {
    const Tensor x = chance_tensor({33, 7}, from, 1);
    for (const DType to : kDeviceTypes)
      EXPECT_TRUE(same_bits(back(convert(copy_to(stream, x), to)), x.to(to)));
  }
}

/// Sites come in the order of the array, and the set is like any other: it finds its neighbours.
TEST(RowsGpu, come_from_dense_arrays) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const KernelWindow window = submanifold_window(3, axes(3, 3), axes(3, 1));
  for (const std::int64_t rows : {0, 1, 33, 20000}) {
    const CoordinateSetPtr set = chance_set(rows, 9);
    const DenseGrid grid = grid_of(*set);
    for (const DType type : kDeviceTypes) {
      const Tensor dense = to_dense(chance_tensor({rows, 5}, type, 1), *set);
      const FromDenseOptions options{.low = grid.low, .stride = {2, 2, 2, 1}};
      const SparseRows expected = from_dense(dense, options);
      const SparseRows actual = from_dense(copy_to(stream, dense), options);
      ASSERT_EQ(actual.set->size(), expected.set->size());
      EXPECT_EQ(actual.set->batch_size(), expected.set->batch_size());
      EXPECT_EQ(actual.set->stride(), expected.set->stride());
      expect_agrees(actual.set->coordinates(), expected.set->coordinates(), 0, 0, "sites");
      expect_agrees(actual.features, expected.features, 0, 0, "features");
      const Tensor weight = chance_tensor({27, 5, 8}, type, 2);
      expect_agrees(
          convolution(actual.features, copy_to(stream, weight),
                      submanifold_map(actual.set, window)->view()),
          convolution(expected.features, weight, submanifold_map(expected.set, window)->view()),
          27 * 5, 27 * 5, "convolution");
    }
  }
}

TEST(RowsGpu, come_from_masked_arrays) {
  PUMICE_NEEDS_GPU();
  const Stream stream(kGpu);
  const Tensor dense = chance_tensor({2, 3, 17, 40}, DType::f16, 1);
  Tensor mask({2, 17, 40}, DType::u8);
  for (std::int64_t i = 0; i < mask.elements(); ++i)
    mask.data<std::uint8_t>()[i] = i % 3 == 1 ? 1 : 0;
  const Tensor gpu_mask = copy_to(stream, mask);
  const SparseRows expected = from_dense(dense, {.mask = mask});
  const SparseRows actual = from_dense(copy_to(stream, dense), {.mask = gpu_mask});
  expect_agrees(actual.set->coordinates(), expected.set->coordinates(), 0, 0, "sites");
  expect_agrees(actual.features, expected.features, 0, 0, "features");
  expect_sentence([&] { from_dense(copy_to(stream, dense), {.mask = mask}); },
                  {"mask is on cpu", "cuda:0"});
}

}   // namespace
}   // namespace pumice
