// TileMMA against float64 loops, and its promise that neither threads nor tiles show in the bits.
#include <pumice/kernels/tile_mma.hpp>

#include <algorithm>
#include <limits>

#include "kernels/problem.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

Tensor run(const KernelMapView& map, const Tensor& input, const Tensor& weight, std::int64_t groups,
           std::int64_t tile_rows, const Epilogue& epilogue = {}, bool transpose = false) {
  const WeightPanels packed(weight, groups, transpose);
  const RelationTiles tiles(map, tile_rows);
  Tensor output = Tensor::full(Shape{map.out_rows, packed.out_channels()}, weight.dtype(), 99);
  tile_mma({.input = input,
            .weight = &packed,
            .tiles = tiles.view(),
            .epilogue = epilogue,
            .output = output.view()});
  return output;
}

void expect_right(const KernelMapView& map, const Channels& channels, DType dtype) {
  SCOPED_TRACE(detail::concatenate(map.in_rows, " -> ", map.out_rows, " rows, ", map.offsets,
                                   " offsets, ", channels.in, " -> ", channels.out, " channels in ",
                                   channels.groups, " groups, ", name_of(dtype)));
  const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
  const Tensor weight =
      random_tensor(Shape{map.offsets, channels.in / channels.groups, channels.out}, dtype, 2);
  const Expected expected = convolve(map, input, weight, channels);
  expect_close(run(map, input, weight, channels.groups, 64), expected);
}

constexpr DType kTypes[] = {DType::f64, DType::f32, DType::f16, DType::bf16};

TEST(TileMma, multiplies_any_number_of_channels) {
  const SyntheticMap map = synthetic_map(5, 97, 83, 0.8, false, 3);
  for (const DType dtype : kTypes) {
    for (const std::int64_t in : {1, 3, 4, 5, 16, 31, 32, 33, 48, 96}) {
      for (const std::int64_t out : {1, 3, 4, 5, 16, 31, 32, 33, 48, 96}) {
        expect_right(map.view(), {in, out, 1}, dtype);
      }
    }
  }
}

TEST(TileMma, multiplies_more_channels_than_a_panel_block_holds) {
  const SyntheticMap map = synthetic_map(3, 40, 45, 0.9, true, 4);
  for (const DType dtype : kTypes) {
    expect_right(map.view(), {384, 33, 1}, dtype);
    expect_right(map.view(), {769, 64, 1}, dtype);
    expect_right(map.view(), {16, 384, 1}, dtype);
  }
}

TEST(TileMma, takes_any_number_of_rows) {
  for (const std::int64_t in_rows : {0, 1, 31, 33}) {
    for (const std::int64_t out_rows : {0, 1, 31, 33, 200}) {
      for (const std::int64_t offsets : {1, 8, 27}) {
        const SyntheticMap map = synthetic_map(offsets, in_rows, out_rows, 0.7, false, 5);
        expect_right(map.view(), {5, 17, 1}, DType::f32);
      }
    }
  }
}

TEST(TileMma, multiplies_every_remainder_of_a_group_of_six_alike) {
  // A map whose offsets have 0, 1, 2, … pairs, all with one input row and one weight: every output
  // that has the offset must get the same bits.
  const Tensor input = random_tensor(Shape{1, 37}, DType::f32, 1);
  const Tensor weight = random_tensor(Shape{1, 37, 200}, DType::f32, 2);
  Tensor first;
  for (std::int32_t pairs = 1; pairs < 20; ++pairs) {
    std::vector<std::int64_t> begin{0, pairs};
    std::vector<std::int32_t> in(static_cast<std::size_t>(pairs), 0), local;
    for (std::int32_t p = 0; p < pairs; ++p)
      local.push_back(p);
    const WeightPanels packed(weight, 1, false);
    Tensor output(Shape{pairs, 200}, DType::f32);
    tile_mma({.input = input,
              .weight = &packed,
              .tiles = {.tile_rows = pairs,
                        .tiles = 1,
                        .offsets = 1,
                        .out_rows = pairs,
                        .begin = begin.data(),
                        .in = in.data(),
                        .local_out = local.data()},
              .output = output.view()});
    if (pairs == 1) first = output;
    for (std::int64_t row = 0; row < pairs; ++row) {
      ASSERT_EQ(std::memcmp(output.data<float>() + row * 200, first.data<float>(), 800), 0)
          << "row " << row << " of " << pairs;
    }
  }
}

TEST(TileMma, multiplies_in_groups_and_channel_by_channel) {
  const SyntheticMap map = synthetic_map(9, 120, 110, 0.6, false, 6);
  for (const DType dtype : kTypes) {
    for (const Channels& channels : {Channels{8, 8, 2},
                                     {6, 10, 2},
                                     {33, 33, 33},
                                     {32, 32, 32},
                                     {5, 15, 5},
                                     {15, 5, 5},
                                     {64, 64, 4},
                                     {21, 63, 3},
                                     {1, 1, 1},
                                     {17, 17, 17}}) {
      expect_right(map.view(), channels, dtype);
    }
  }
}

TEST(TileMma, multiplies_with_transposed_weights) {
  const SyntheticMap map = synthetic_map(5, 60, 70, 0.8, false, 7);
  for (const DType dtype : kTypes) {
    for (const Channels& channels : {Channels{5, 33, 1}, {48, 16, 1}, {12, 30, 3}, {9, 9, 9}}) {
      const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
      const Tensor weight =
          random_tensor(Shape{map.offsets, channels.out / channels.groups, channels.in}, dtype, 2);
      expect_close(run(map.view(), input, weight, channels.groups, 32, {}, true),
                   convolve(map.view(), input, weight, channels, true));
    }
  }
}

TEST(TileMma, leaves_out_pairs_without_input) {
  const Tensor input = Tensor::full(Shape{2, 3}, DType::f32, 1);
  const Tensor weight =
      Tensor::full(Shape{2, 3, 4}, DType::f32, std::numeric_limits<double>::infinity());
  const WeightPanels packed(weight, 1, false);
  const std::vector<std::int64_t> begin{0, 2, 4};
  const std::vector<std::int32_t> in{-1, 1, -1, -1}, local{0, 1, 0, 1};
  Tensor output(Shape{2, 4}, DType::f32);
  tile_mma({.input = input,
            .weight = &packed,
            .tiles = {.tile_rows = 2,
                      .tiles = 1,
                      .offsets = 2,
                      .out_rows = 2,
                      .begin = begin.data(),
                      .in = in.data(),
                      .local_out = local.data()},
            .output = output.view()});
  for (std::size_t c = 0; c < 4; ++c) {
    EXPECT_EQ(output.span<float>()[c], 0.0f);
    EXPECT_EQ(output.span<float>()[4 + c], std::numeric_limits<float>::infinity());
  }
}

TEST(TileMma, gives_the_same_bits_for_any_tiles_and_threads) {
  const SyntheticMap map = synthetic_map(27, 3000, 2900, 0.5, false, 8);
  for (const DType dtype : kTypes) {
    for (const Channels& channels : {Channels{31, 33, 1}, {96, 96, 1}, {8, 24, 4}, {32, 32, 32}}) {
      const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
      const Tensor weight =
          random_tensor(Shape{map.offsets, channels.in / channels.groups, channels.out}, dtype, 2);
      Tensor first;
      for (const int threads : {1, 2, 3}) {
        const WithThreads with(threads);
        for (const std::int64_t tile_rows : {1, 7, 64, 1000, 4096}) {
          Tensor output = run(map.view(), input, weight, channels.groups, tile_rows);
          if (!first.defined()) first = output;
          ASSERT_TRUE(same_bits(first, output))
              << name_of(dtype) << ", " << threads << " threads, tiles of " << tile_rows;
        }
      }
    }
  }
}

TEST(TileMma, adds_to_a_partial_result_and_leaves_the_output_alone) {
  const SyntheticMap map = synthetic_map(6, 90, 100, 0.7, false, 9);
  for (const DType dtype : kTypes) {
    for (const Channels& channels : {Channels{7, 19, 1}, {12, 10, 2}, {11, 11, 11}}) {
      const DType compute = dtype == DType::f64 ? DType::f64 : DType::f32;
      const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, dtype, 1);
      const Tensor weight =
          random_tensor(Shape{map.offsets, channels.in / channels.groups, channels.out}, dtype, 2);
      Tensor partial = random_tensor(Shape{map.out_rows, channels.out}, compute, 3);
      Expected expected = convolve(map.view(), input, weight, channels);
      const std::vector<double> before = doubles(partial);
      for (std::size_t i = 0; i < before.size(); ++i)
        expected.add(i, before[i]);
      const WeightPanels packed(weight, channels.groups, false);
      const RelationTiles tiles(map.view(), 32);
      Tensor output = Tensor::full(partial.shape(), dtype, 5);
      tile_mma({.input = input,
                .weight = &packed,
                .tiles = tiles.view(),
                .output = output.view(),
                .partial = partial.view()});
      expect_close(partial, expected);
      EXPECT_TRUE(same_bits(output, Tensor::full(partial.shape(), dtype, 5)));
    }
  }
}

TEST(TileMma, refuses_operands_that_do_not_fit_each_other) {
  const SyntheticMap map = synthetic_map(2, 10, 10, 0.9, true, 10);
  const Tensor weight = random_tensor(Shape{2, 4, 6}, DType::f32, 1);
  const auto message = [&](const Tensor& input, const Tensor& with) {
    try {
      run(map.view(), input, with, 1, 8);
    } catch (const UserError& error) {
      return std::string(error.what());
    }
    return std::string("nothing");
  };
  EXPECT_EQ(message(random_tensor(Shape{10, 5}, DType::f32, 2), weight),
            "features of shape [10, 5] meet a weight of 4 input channels; give [rows, 4]");
  EXPECT_EQ(message(random_tensor(Shape{10, 4}, DType::f64, 2), weight),
            "features are f64, weights f32; convert one of them");
  EXPECT_EQ(message(random_tensor(Shape{10, 4}, DType::f32, 2),
                    random_tensor(Shape{3, 4, 6}, DType::f32, 1)),
            "weight has 3 offsets, the kernel map 2; both must come from one kernel size");
  EXPECT_THROW(WeightPanels(weight, 4, false), UserError);
}

}   // namespace
}   // namespace pumice
