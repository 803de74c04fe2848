// Partial results of split kernel offsets, and counts that were exceeded.
// Covers finish_partial of device/pumice/skeleton.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <gtest/gtest.h>

#include <pumice/skeleton/finish_partial.h>

#include "kernels/emulated_tile.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr TileSpec split_spec(Write write) {
  TileSpec spec;
  spec.write = write;
  spec.in_channels = spec.first_channels = 16;
  spec.out_channels = 22;   // rows of 88 bytes in fp32: accesses of 8
  spec.tile_rows = 64;
  spec.tile_columns = 32;
  spec.tile_depth = 16;
  spec.stages = 2;
  spec.row_warps = 2;
  return spec;
}

const SyntheticMap& cloud() {
  static const SyntheticMap map = synthetic_map(27, 120, 140, 0.5, true, 1);
  return map;
}

void finish_f16(const FinishArguments& arguments) {
  finish_partial<ElementType::f16>(arguments);
}

/// Splits of `splits` shares through `partial`, then the epilogue.
template <TileSpec S>
void run_splits(EmulatedConvolution<S>& convolution, int splits, Tensor& partial,
                std::int32_t slots, bool clear) {
  const HostTileMap tiles = host_tile_map(convolution.map, S.tile_rows, splits);
  TileArguments arguments = convolution.arguments;
  arguments.map = tiles.ref();
  arguments.output = partial.raw();
  emulate_tile<S>(arguments, tiles.tiles(), RunOrder::shuffled);
  const FinishArguments finish{.partial = partial.data<float>(),
                               .output = convolution.output.raw(),
                               .tiles = tiles.ref().tiles,
                               .out_rows = tiles.ref().out_rows,
                               .channels = static_cast<std::int32_t>(S.out_channels),
                               .slots = slots,
                               .clear = clear,
                               .epilogue = convolution.arguments.epilogue};
  emulate({.blocks = 3, .threads = 64}, finish_f16, finish);
}

TEST(TilePartial, splits_add_up) {
  EmulatedConvolution<split_spec(Write::add)> convolution(cloud().view());
  convolution.add_epilogue(Activation::relu);
  Tensor partial(Shape{140, 22}, DType::f32);
  std::memset(partial.raw(), 0, partial.bytes());
  run_splits(convolution, 3, partial, 1, true);
  expect_close(convolution.output, convolution.expected(), 32);
  for (const float value : partial.span<float>())
    ASSERT_EQ(value, 0) << "the partial result is to be cleared for its next use";
}

TEST(TilePartial, slots_need_no_zeros_and_no_order) {
  EmulatedConvolution<split_spec(Write::slots)> convolution(cloud().view());
  convolution.add_epilogue(Activation::gelu);
  Tensor partial = poisoned_tensor(Shape{3, 140, 22}, DType::f32);
  run_splits(convolution, 3, partial, 3, false);
  expect_close(convolution.output, convolution.expected(), 32);
}

/// A tile has the shortcut behind its entries; those of the other splits leave it out.
TEST(TilePartial, splits_have_one_shortcut) {
  constexpr TileSpec kFused = [] {
    TileSpec spec = split_spec(Write::slots);
    spec.shortcut_channels = 40;
    spec.shortcut_first_channels = 24;
    return spec;
  }();
  EmulatedConvolution<kFused> convolution(cloud().view());
  convolution.add_epilogue(Activation::relu);
  Tensor partial = poisoned_tensor(Shape{3, 140, 22}, DType::f32);
  run_splits(convolution, 3, partial, 3, false);
  expect_close(convolution.output, convolution.expected(), 32);
}

TEST(TilePartial, finishes_rows_of_four_channels_at_once) {
  constexpr TileSpec kEven = [] {
    TileSpec spec = split_spec(Write::slots);
    spec.out_channels = 24;
    return spec;
  }();
  EmulatedConvolution<kEven> convolution(cloud().view());
  convolution.add_epilogue(Activation::leaky_relu);
  Tensor partial = poisoned_tensor(Shape{2, 140, 24}, DType::f32);
  run_splits(convolution, 2, partial, 2, false);
  expect_close(convolution.output, convolution.expected(), 32);
}

constexpr TileSpec store_spec(Instruction instruction) {
  TileSpec spec = split_spec(Write::store);
  spec.instruction = instruction;
  spec.tile_rows = 128;
  spec.row_warps = 8;
  return spec;
}

/// Runs over spare tiles with counts in memory.
template <TileSpec S> Tensor run_counted(std::int64_t rows, std::int64_t tiles_word) {
  EmulatedConvolution<S> convolution(cloud().view());
  const HostTileMap tiles = host_tile_map(convolution.map, S.tile_rows);
  std::vector<TileRun> order = tiles.order;
  order.resize(order.size() + 3, TileRun{1 << 20, 1 << 20, 1 << 21, 0});
  const std::int64_t tile_count = tiles_word < 0 ? tiles.tiles() : tiles_word;
  convolution.arguments.map = tiles.ref();
  convolution.arguments.map.tile_order = order.data();
  convolution.arguments.map.tiles = {&tile_count, static_cast<std::int64_t>(order.size())};
  convolution.arguments.map.out_rows = {&rows, 140};
  emulate_tile<S>(convolution.arguments, static_cast<std::int64_t>(order.size()));
  if (tiles_word < 0 && rows <= 140) expect_close(convolution.output, convolution.expected(), 16);
  return std::move(convolution.output);
}

template <TileSpec S> void expect_poison(std::int64_t rows, std::int64_t tiles) {
  const Tensor output = run_counted<S>(rows, tiles);
  for (const double value : doubles(output))
    ASSERT_TRUE(std::isnan(value));
}

TEST(TilePoison, spare_tiles_do_nothing) {
  run_counted<store_spec(Instruction::mma_sync)>(140, -1);
  run_counted<store_spec(Instruction::wgmma)>(140, -1);
}

TEST(TilePoison, an_exceeded_capacity_makes_every_row_nan) {
  expect_poison<store_spec(Instruction::mma_sync)>(141, -1);
  expect_poison<store_spec(Instruction::mma_sync)>(140, 9);
  expect_poison<store_spec(Instruction::wgmma)>(kPoison, -1);
  expect_poison<store_spec(Instruction::wgmma)>(140, kPoison);
}

}   // namespace
}   // namespace pumice
