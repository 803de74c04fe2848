// Fetch-on-demand on the host: pairs cut to tiles, multiplied by the kernels of other dataflows,
// added up and finished, against float64 loops; the sequence that a device executes.
// Covers pair_sums of src/kernels/cuda.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include "kernels/cuda/pair_sums.hpp"

#include <gtest/gtest.h>

#include <pumice/formats/pair_tiles.h>
#include <pumice/skeleton/depthwise.h>
#include <pumice/skeleton/finish_pairs.h>
#include <pumice/skeleton/finish_partial.h>

#include "device/spec_runner.hpp"
#include "formats/cuda/pair_tiles.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "kernels/emulated_tile.hpp"
#include "kernels/small_specs.hpp"

namespace pumice::test {
namespace {

template <ElementType kType> void knows_finishing(SpecRunner& runner, const std::string& type) {
  runner.knows("finish_partial_" + type, cuda::kFinishKernel, finish_partial<kType>);
  runner.knows("finish_partial_" + type, cuda::kFinishPairsKernel, finish_pairs<kType>);
}

void knows_all(SpecRunner& runner) {
  runner.knows("pair tiles", "plan_pair_tiles", plan_pair_tiles);
  runner.knows("pair tiles", "fill_pair_tiles", fill_pair_tiles);
  runner.knows("pair tiles", "index_pairs", index_pairs);
  knows_finishing<ElementType::f32>(runner, "f32");
  knows_finishing<ElementType::f16>(runner, "f16");
  knows_finishing<ElementType::bf16>(runner, "bf16");
}

/// What a product is told: with `write` slots, a row for each pair.
struct Sequence {
  SpecRunner& runner;
  const KernelMapView& map;
  cuda::SumTarget target;
  std::int32_t tile_rows;

  /// `multiply(tiles, partial)` enqueues the products.
  template <class Multiply> void run(Write write, Multiply&& multiply) {
    const PairListRef pairs = pair_list(map);
    const cuda::PairTiles tiles(runner, pairs, {{nullptr, map.in_rows}, target.out_rows},
                                {.tile_rows = tile_rows, .own_rows = write == Write::slots});
    if (write == Write::add) {
      cuda::PartialSums sums(runner, target);
      multiply(tiles.ref(), sums.data());
      sums.finish(runner, tiles.ref().tiles);
    } else {
      const Buffer<std::int32_t> pair_of = cuda::index_pairs(runner, pairs, map.out_rows);
      cuda::SeparateSums sums(runner, target, map.pairs(), pair_of.data(),
                              static_cast<std::int32_t>(map.offsets));
      std::fill_n(sums.data(), map.pairs() * target.channels,
                  std::numeric_limits<float>::quiet_NaN());
      multiply(tiles.ref(), sums.data());
      sums.finish(runner, tiles.ref().tiles);
    }
  }
};

template <TileSpec S> void expect_fetches(const KernelMapView& map, Activation activation) {
  SCOPED_TRACE(cuda::tile_name(S));
  SpecRunner runner;
  knows_all(runner);
  runner.knows(cuda::tile_name(S), cuda::kTileKernel, run_skeleton<S>);
  EmulatedConvolution<S> convolution(map);
  if (activation != Activation::none) convolution.add_epilogue(activation);
  Sequence sequence{runner,
                    map,
                    {.output = convolution.output.raw(),
                     .type = S.output,
                     .out_rows = {nullptr, map.out_rows},
                     .channels = static_cast<std::int32_t>(convolution.kOut),
                     .epilogue = convolution.arguments.epilogue},
                    S.tile_rows};
  sequence.run(S.write, [&](const TileMapRef& tiles, float* partial) {
    TileArguments arguments = convolution.arguments;
    arguments.map = tiles;
    arguments.output = partial;
    arguments.epilogue = {};
    cuda::launch_tiles(runner, S, arguments);
  });
  expect_close(convolution.output, convolution.expected(), 32);
}

constexpr TileSpec pair_spec(std::int32_t in, std::int32_t out, ElementType operand, Write write) {
  TileSpec spec = small_tile(in, out, operand);
  spec.write = write;
  spec.stages = 2;
  return spec;
}

TEST(FetchOnDemand, AddsProductsUpInEveryType) {
  const KernelMapView map = small_map().view();
  expect_fetches<pair_spec(16, 24, ElementType::f16, Write::add)>(map, Activation::relu);
  expect_fetches<pair_spec(16, 24, ElementType::bf16, Write::slots)>(map, Activation::relu);
  expect_fetches<pair_spec(16, 24, ElementType::tf32, Write::add)>(map, Activation::none);
  expect_fetches<pair_spec(16, 24, ElementType::f32, Write::slots)>(map, Activation::gelu);
}

TEST(FetchOnDemand, TakesAnyChannelsAndGroups) {
  const KernelMapView map = small_map().view();
  expect_fetches<pair_spec(3, 5, ElementType::f16, Write::add)>(map, Activation::none);
  expect_fetches<pair_spec(5, 33, ElementType::f32, Write::slots)>(map, Activation::none);
  expect_fetches<changed(pair_spec(16, 24, ElementType::f16, Write::slots),
                         [](TileSpec& spec) { spec.groups = 3; })>(map, Activation::none);
}

TEST(FetchOnDemand, RunsOnEverySkeleton) {
  const KernelMapView map = small_map().view();
  constexpr auto warpgroups = [](TileSpec& spec) {
    spec.instruction = Instruction::wgmma;
    spec.tile_rows = 128;
    spec.tile_columns = 24;
    spec.row_warps = 8;
  };
  constexpr auto resident = [](TileSpec& spec) {
    spec.resident_offsets = 27;
    spec.tile_depth = 16;
  };
  expect_fetches<changed(pair_spec(32, 24, ElementType::f16, Write::add), warpgroups)>(
      map, Activation::none);
  expect_fetches<changed(pair_spec(32, 24, ElementType::bf16, Write::slots), warpgroups)>(
      map, Activation::relu);
  expect_fetches<changed(pair_spec(16, 16, ElementType::f16, Write::slots), resident)>(
      map, Activation::none);
  expect_fetches<changed(pair_spec(4, 32, ElementType::bf16, Write::add), resident)>(
      map, Activation::none);
}

TEST(FetchOnDemand, TakesAnyNumberOfRows) {
  for (const std::int64_t rows : {0, 1, 31, 33}) {
    const SyntheticMap map = synthetic_map(8, rows, rows, 0.7, true, 9);
    expect_fetches<pair_spec(8, 8, ElementType::f16, Write::add)>(map.view(), Activation::relu);
    expect_fetches<pair_spec(8, 8, ElementType::f16, Write::slots)>(map.view(), Activation::relu);
  }
}

template <ElementType kType, Write kWrite>
void expect_depthwise(const std::string& source, std::int32_t channels) {
  const KernelMapView map = small_map().view();
  const DType type = storage_type(kType);
  const Tensor input = random_tensor(Shape{map.in_rows, channels}, type, 1);
  const Tensor weight = random_tensor(Shape{map.offsets, 1, channels}, type, 2);
  Tensor output = garbage({map.out_rows, channels}, type);
  SpecRunner runner;
  knows_all(runner);
  runner.knows(source, cuda::kDepthwiseKernel, depthwise<kType, kWrite>);
  Sequence sequence{runner,
                    map,
                    {.output = output.raw(),
                     .type = kType,
                     .out_rows = {nullptr, map.out_rows},
                     .channels = channels},
                    128};
  sequence.run(kWrite, [&](const TileMapRef& tiles, float* partial) {
    cuda::launch_depthwise(runner, kType,
                           {.map = tiles,
                            .input = input.raw(),
                            .weight = weight.raw(),
                            .output = partial,
                            .channels = channels},
                           kWrite);
  });
  expect_close(output, convolve(map, input, weight, {channels, channels, channels}), 8);
}

TEST(FetchOnDemand, MultipliesDepthwise) {
  expect_depthwise<ElementType::f32, Write::add>("depthwise_add_f32", 12);
  expect_depthwise<ElementType::f16, Write::slots>("depthwise_slots_f16", 12);
  expect_depthwise<ElementType::bf16, Write::add>("depthwise_add_bf16", 33);
  expect_depthwise<ElementType::f32, Write::slots>("depthwise_slots_f32", 33);
}

TEST(FetchOnDemand, OfPoisonIsPoison) {
  const KernelMapView map = small_map().view();
  Tensor output = Tensor::zeros({map.out_rows, 8}, DType::f16);
  SpecRunner runner;
  knows_all(runner);
  const std::int64_t tiles = kPoison;
  cuda::PartialSums added(runner, {.output = output.raw(),
                                   .type = ElementType::f16,
                                   .out_rows = {nullptr, map.out_rows},
                                   .channels = 8});
  added.finish(runner, {&tiles, 40});
  for (const double value : doubles(output))
    ASSERT_TRUE(std::isnan(value));
  output = Tensor::zeros({map.out_rows, 8}, DType::f16);
  cuda::SeparateSums separate(runner,
                              {.output = output.raw(),
                               .type = ElementType::f16,
                               .out_rows = {nullptr, map.out_rows},
                               .channels = 8},
                              10, nullptr, 27);
  separate.finish(runner, {&tiles, 40});
  for (const double value : doubles(output))
    ASSERT_TRUE(std::isnan(value));
}

}   // namespace
}   // namespace pumice::test
