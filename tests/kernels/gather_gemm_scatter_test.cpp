// Gather-GEMM-scatter and its parts against float64 loops.
#include <pumice/kernels/gather_gemm_scatter.hpp>

#include <pumice/kernels/dense_gemm.hpp>

#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

Tensor run(const KernelMapView& map, const Tensor& input, const Tensor& weight, std::int64_t groups,
           std::int64_t tile_rows, bool transpose = false, const Epilogue& epilogue = {}) {
  const RelationTiles tiles(map, tile_rows);
  const std::int64_t out_channels = transpose ? weight.extent(1) * groups : weight.extent(2);
  Tensor output = Tensor::full(Shape{map.out_rows, out_channels}, weight.dtype(), 99);
  gather_gemm_scatter({.input = input,
                       .weight = weight,
                       .groups = groups,
                       .transpose_weight = transpose,
                       .tiles = tiles.view(),
                       .epilogue = epilogue,
                       .output = output.view()});
  return output;
}

TEST(GatherGemmScatter, gives_the_product_of_every_shape) {
  for (const DType dtype : kTypes) {
    for (const std::int64_t rows : {0, 1, 31, 33, 1500}) {
      const SyntheticMap map = synthetic_map(9, rows, rows + 3, 0.7, rows % 2 == 0, 3);
      for (const Channels& channels :
           {Channels{1, 1, 1}, {3, 5, 1}, {33, 48, 1}, {96, 31, 1}, {12, 30, 3}, {9, 9, 9}}) {
        SCOPED_TRACE(detail::concatenate(name_of(dtype), ' ', rows, " rows ", channels.in, " -> ",
                                         channels.out));
        const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
        const Tensor weight = random_tensor(
            Shape{map.offsets, channels.in / channels.groups, channels.out}, dtype, 2);
        // A product is rounded before it is added: up to one rounding more for each offset.
        expect_close(run(map.view(), input, weight, channels.groups, 512),
                     convolve(map.view(), input, weight, channels), 14);
        const Tensor turned = random_tensor(
            Shape{map.offsets, channels.out / channels.groups, channels.in}, dtype, 2);
        expect_close(run(map.view(), input, turned, channels.groups, 512, true),
                     convolve(map.view(), input, turned, channels, true), 14);
      }
    }
  }
}

TEST(GatherGemmScatter, multiplies_consecutive_rows_in_place) {
  // One offset, every row meets itself: nothing is copied, and the result is the dense product.
  constexpr std::int64_t kRows = 2500;
  std::vector<std::int64_t> begin{0, kRows};
  std::vector<std::int32_t> row(kRows);
  std::iota(row.begin(), row.end(), 0);
  const KernelMapView map{.offsets = 1,
                          .in_rows = kRows,
                          .out_rows = kRows,
                          .offset_begin = begin,
                          .in = row,
                          .out = row,
                          .out_order = {},
                          .in_order = {},
                          .sorted_by_out = true,
                          .sorted_by_in = true,
                          .has_identity_offset = true};
  const Tensor input = random_tensor(Shape{kRows, 20}, DType::f32, 1);
  const Tensor weight = random_tensor(Shape{1, 20, 24}, DType::f32, 2);
  expect_close(run(map, input, weight, 1, 1024), convolve(map, input, weight, {20, 24, 1}));
}

TEST(GatherGemmScatter, gives_the_same_bits_for_any_threads) {
  const SyntheticMap map = synthetic_map(27, 5000, 5100, 0.6, false, 4);
  for (const DType dtype : kTypes) {
    const Tensor input = random_tensor(Shape{map.in_rows, 33}, dtype, 1);
    const Tensor weight = random_tensor(Shape{map.offsets, 33, 48}, dtype, 2);
    Tensor first;
    for (const int threads : {1, 2, 3}) {
      const WithThreads with(threads);
      for (int repetition = 0; repetition < 5; ++repetition) {
        const Tensor output = run(map.view(), input, weight, 1, 256);
        if (!first.defined()) first = output;
        ASSERT_TRUE(same_bits(first, output)) << name_of(dtype) << ", " << threads << " threads";
      }
    }
  }
}

TEST(GatherGemmScatter, finishes_with_the_epilogue) {
  const SyntheticMap map = synthetic_map(5, 70, 60, 0.7, false, 5);
  const Tensor input = random_tensor(Shape{70, 8}, DType::f32, 1);
  const Tensor weight = random_tensor(Shape{5, 8, 19}, DType::f32, 2);
  const Tensor shift = random_tensor(Shape{19}, DType::f32, 3);
  Expected expected = convolve(map.view(), input, weight, {8, 19, 1});
  for (std::size_t i = 0; i < expected.value.size(); ++i) {
    expected.add(i, doubles(shift)[i % 19]);
    expected.value[i] = std::max(0.0, expected.value[i]);
  }
  expect_close(run(map.view(), input, weight, 1, 16, false,
                   {.shift = shift, .activation = Activation::relu}),
               expected, 10);
}

TEST(GatherRows, widens_rows_and_gives_zeros_for_rows_that_are_not_there) {
  for (const DType dtype : kTypes) {
    const Tensor input = random_tensor(Shape{40, 13}, dtype, 1);
    const std::vector<std::int32_t> rows{3, -1, 39, 3, 0};
    Tensor out = Tensor::full(Shape{5, 13}, dtype == DType::f64 ? DType::f64 : DType::f32, 7);
    gather_rows(input, rows, out.view());
    const auto x = doubles(input), y = doubles(out);
    for (std::size_t i = 0; i < 5; ++i) {
      for (std::size_t c = 0; c < 13; ++c) {
        EXPECT_EQ(y[i * 13 + c], rows[i] < 0 ? 0 : x[static_cast<std::size_t>(rows[i]) * 13 + c]);
      }
    }
  }
}

TEST(ScatterAddRows, adds_repeated_rows_in_order) {
  for (const DType dtype : {DType::f32, DType::f64}) {
    for (const int threads : {1, 3}) {
      const WithThreads with(threads);
      const Tensor product = random_tensor(Shape{400, 70}, dtype, 1);
      Random random(2);
      std::vector<std::int32_t> rows(400);
      for (auto& row : rows)
        row = static_cast<std::int32_t>(random.integer(-1, 20));
      Tensor sums = random_tensor(Shape{21, 70}, dtype, 3);
      Tensor expected = sums.clone();
      dispatch_floating(dtype, "test", [&](auto zero) {
        using T = decltype(zero);
        if constexpr (std::is_same_v<T, compute_t<T>>) {
          for (std::int64_t i = 0; i < 400; ++i) {
            const std::int64_t row = rows[static_cast<std::size_t>(i)];
            if (row < 0) continue;
            for (std::int64_t c = 0; c < 70; ++c) {
              expected.data<T>()[row * 70 + c] += product.data<T>()[i * 70 + c];
            }
          }
        }
      });
      scatter_add_rows(product, rows, sums.view());
      EXPECT_TRUE(same_bits(sums, expected));
    }
  }
}

}   // namespace
}   // namespace pumice
