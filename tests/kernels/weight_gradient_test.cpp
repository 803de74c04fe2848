// The weight gradient against float64 loops, and the same bits from any number of threads.
#include <pumice/kernels/weight_gradient.hpp>

#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

void expect_right(const KernelMapView& map, const Channels& channels, DType dtype) {
  SCOPED_TRACE(detail::concatenate(map.pairs(), " pairs, ", channels.in, " -> ", channels.out,
                                   " channels in ", channels.groups, " groups, ", name_of(dtype)));
  const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
  const Tensor grad = random_tensor(Shape{map.out_rows, channels.out}, dtype, 2);
  expect_close(weight_gradient(input, grad, map, channels.groups),
               weight_product(map, input, grad, channels));
}

TEST(WeightGradient, multiplies_any_number_of_channels) {
  const SyntheticMap map = synthetic_map(4, 300, 280, 0.8, false, 3);
  for (const DType dtype : kTypes) {
    for (const std::int64_t in : {1, 3, 4, 5, 16, 33, 96}) {
      for (const std::int64_t out : {1, 3, 4, 5, 16, 33, 96}) {
        expect_right(map.view(), {in, out, 1}, dtype);
      }
    }
    expect_right(map.view(), {384, 48, 1}, dtype);
  }
}

TEST(WeightGradient, takes_any_number_of_rows_and_offsets_without_pairs) {
  for (const std::int64_t rows : {0, 1, 31, 33}) {
    for (const std::int64_t offsets : {0, 1, 27}) {
      const SyntheticMap map = synthetic_map(offsets, rows, 33, 0.3, false, 4);
      expect_right(map.view(), {7, 17, 1}, DType::f32);
    }
  }
}

TEST(WeightGradient, multiplies_in_groups_and_channel_by_channel) {
  const SyntheticMap map = synthetic_map(9, 400, 410, 0.6, false, 5);
  for (const DType dtype : kTypes) {
    for (const Channels& channels :
         {Channels{8, 8, 2}, {6, 10, 2}, {33, 33, 33}, {5, 15, 5}, {15, 5, 5}, {64, 64, 4}}) {
      expect_right(map.view(), channels, dtype);
    }
  }
}

TEST(WeightGradient, adds_up_many_chunks_of_pairs) {
  // 65,537 pairs of one offset are 33 chunks.
  const SyntheticMap map = synthetic_map(2, 65537, 65537, 1.0, true, 6);
  expect_right(map.view(), {3, 5, 1}, DType::f32);
  expect_right(map.view(), {4, 4, 4}, DType::f16);
}

TEST(WeightGradient, gives_the_same_bits_for_any_threads) {
  const SyntheticMap map = synthetic_map(27, 9000, 9100, 0.7, false, 7);
  for (const DType dtype : kTypes) {
    for (const Channels& channels : {Channels{31, 33, 1}, {16, 16, 4}, {8, 8, 8}}) {
      const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
      const Tensor grad = random_tensor(Shape{map.out_rows, channels.out}, dtype, 2);
      Tensor first;
      for (const int threads : {1, 2, 3}) {
        const WithThreads with(threads);
        const Tensor result = weight_gradient(input, grad, map.view(), channels.groups);
        if (!first.defined()) first = result;
        ASSERT_TRUE(same_bits(first, result)) << name_of(dtype) << ", " << threads << " threads";
      }
    }
  }
}

TEST(WeightGradient, refuses_rows_that_are_not_the_map_s) {
  const SyntheticMap map = synthetic_map(2, 10, 12, 0.9, true, 8);
  const Tensor input = random_tensor(Shape{10, 4}, DType::f32, 1);
  const Tensor grad = random_tensor(Shape{12, 6}, DType::f32, 2);
  EXPECT_THROW(weight_gradient(grad, input, map.view(), 1), UserError);
  EXPECT_THROW(weight_gradient(input, grad.to(DType::f16), map.view(), 1), UserError);
  EXPECT_THROW(weight_gradient(input, grad, map.view(), 4), UserError);
}

}   // namespace
}   // namespace pumice
