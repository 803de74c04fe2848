// Weight gradient kernels on the host, instruction by instruction, against float64 loops.
// Covers gradient_warps and gradient_wgmma of device/pumice/skeleton.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <algorithm>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/skeleton/sum_slots.h>

#include "kernels/emulated_gradient.hpp"
#include "kernels/emulated_tile.hpp"
#include "kernels/small_specs.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

constexpr GradientSpec warp_spec(std::int32_t in, std::int32_t out, ElementType operand) {
  GradientSpec spec;
  spec.instruction = operand == ElementType::f32 ? Instruction::fma : Instruction::mma_sync;
  spec.operand = operand;
  spec.in_channels = in;
  spec.out_channels = out;
  spec.tile_in = 32;
  spec.tile_out = 32;
  spec.stages = 3;
  spec.in_warps = 2;
  spec.out_warps = 1;
  return spec;
}

constexpr GradientSpec warpgroup_spec(std::int32_t in, std::int32_t out, std::int32_t warpgroups) {
  GradientSpec spec = warp_spec(in, out, ElementType::bf16);
  spec.instruction = Instruction::wgmma;
  spec.tile_in = 64 * warpgroups;
  spec.tile_out = 40;
  spec.in_warps = 4 * warpgroups;
  return spec;
}

void sum_slots_f32(const SumSlotsArguments& arguments) {
  sum_slots<ElementType::f32>(arguments);
}

template <GradientSpec S> struct EmulatedGradient {
  static constexpr Channels kChannels{std::int64_t{S.groups} * S.in_channels,
                                      std::int64_t{S.groups} * S.out_channels, S.groups};

  explicit EmulatedGradient(const KernelMapView& pairs)
      : map(pairs),
        input(operand_tensor(Shape{map.in_rows, kChannels.in}, S.operand, 1)),
        grad(operand_tensor(Shape{map.out_rows, kChannels.out}, S.operand, 2)),
        result(Shape{map.offsets, S.in_channels, kChannels.out}, DType::f32) {}

  void run(std::int64_t blocks, RunOrder order) {
    GradientArguments arguments{.pairs = pair_list(map),
                                .input = input.raw(),
                                .grad = grad.raw(),
                                .result = result.template data<float>(),
                                .result_channels = S.in_channels};
    const EmulatedShape shape{
        .blocks = blocks,
        .blocks_y = gradient_tiles(S),
        .threads = threads(S),
        .shared_bytes = shared_bytes(S, static_cast<std::int32_t>(map.offsets))};
    if (S.write == Write::add) {
      std::memset(result.raw(), 0, result.bytes());
      emulate(shape, run_gradient<S>, arguments, {.blocks = order, .threads = order});
      return;
    }
    Tensor slots = poisoned_tensor(
        Shape{gradient_slots(map.offsets, blocks), S.in_channels, kChannels.out}, DType::f32);
    arguments.result = slots.data<float>();
    emulate(shape, run_gradient<S>, arguments, {.blocks = order, .threads = order});
    std::memset(result.raw(), 0xff, result.bytes());
    const SumSlotsArguments sum{.pairs = pair_list(map),
                                .slots = slots.data<float>(),
                                .result = result.raw(),
                                .in_channels = S.in_channels,
                                .columns = static_cast<std::int32_t>(kChannels.out),
                                .result_channels = S.in_channels,
                                .tile_pairs = S.tile_pairs,
                                .share_blocks = static_cast<std::int32_t>(blocks)};
    emulate({.blocks = 2,
             .blocks_y = static_cast<int>(map.offsets),
             .threads = 64,
             .shared_bytes = offset_table_bytes(static_cast<std::int32_t>(map.offsets))},
            sum_slots_f32, sum);
  }

  KernelMapView map;
  Tensor input, grad, result;
};

template <GradientSpec S>
void expect_gradient(const KernelMapView& map, std::int64_t blocks = 3,
                     RunOrder order = RunOrder::ascending) {
  EmulatedGradient<S> gradient(map);
  gradient.run(blocks, order);
  expect_close(gradient.result,
               weight_product(map, gradient.input, gradient.grad, EmulatedGradient<S>::kChannels),
               16);
}

constexpr auto slots = [](GradientSpec& spec) { spec.write = Write::slots; };

TEST(WeightGradientWarps, multiplies_half_types) {
  expect_gradient<warp_spec(32, 32, ElementType::f16)>(small_map().view());
  expect_gradient<warp_spec(32, 48, ElementType::bf16)>(small_map().view(), 5, RunOrder::shuffled);
}

TEST(WeightGradientWarps, multiplies_tf32_and_fp32) {
  expect_gradient<warp_spec(32, 32, ElementType::tf32)>(small_map().view());
  expect_gradient<warp_spec(36, 64, ElementType::f32)>(small_map().view());
}

TEST(WeightGradientWarps, takes_any_number_of_channels_and_groups) {
  expect_gradient<warp_spec(3, 20, ElementType::f16)>(small_map().view());
  expect_gradient<warp_spec(37, 5, ElementType::bf16)>(small_map().view());
  expect_gradient<warp_spec(5, 3, ElementType::f32)>(small_map().view());
  expect_gradient<changed(warp_spec(16, 24, ElementType::f16), [](GradientSpec& spec) {
    spec.groups = 2;
    spec.tile_in = 16;
    spec.in_warps = 1;
    spec.out_warps = 2;
  })>(small_map().view());
}

TEST(WeightGradientWarps, shares_wide_tiles) {
  expect_gradient<changed(warp_spec(96, 128, ElementType::bf16), [](GradientSpec& spec) {
    spec.tile_in = 96;
    spec.tile_out = 64;
    spec.tile_pairs = 64;
    spec.out_warps = 2;
  })>(small_map().view(), 2, RunOrder::descending);
}

TEST(WeightGradientWgmma, multiplies_transposed) {
  expect_gradient<warpgroup_spec(64, 40, 1)>(small_map().view());
  expect_gradient<warpgroup_spec(128, 40, 2)>(small_map().view(), 4, RunOrder::shuffled);
}

TEST(WeightGradientWgmma, pads_channels_and_crosses_column_blocks) {
  expect_gradient<changed(warpgroup_spec(96, 88, 2), [](GradientSpec& spec) {
    spec.tile_out = 88;   // one block of 64 columns and part of a second
    spec.tile_pairs = 64;
  })>(small_map().view());
  expect_gradient<warpgroup_spec(24, 48, 1)>(small_map().view());   // two tiles of 40
}

TEST(WeightGradientSlots, gives_the_same_in_a_fixed_order) {
  expect_gradient<changed(warp_spec(32, 32, ElementType::f16), slots)>(small_map().view(), 3);
  expect_gradient<changed(warp_spec(5, 3, ElementType::f32), slots)>(small_map().view(), 7);
  expect_gradient<changed(warpgroup_spec(64, 40, 1), slots)>(small_map().view(), 4);
}

TEST(WeightGradientSlots, has_more_blocks_than_chunks_and_empty_offsets) {
  const SyntheticMap sparse = synthetic_map(40, 60, 60, 0.04, true, 2);
  constexpr GradientSpec kSpec = changed(warp_spec(32, 32, ElementType::f16), slots);
  for (const std::int64_t blocks : {1, 64})
    expect_gradient<kSpec>(sparse.view(), blocks);
  const SyntheticMap none = synthetic_map(3, 10, 10, 0, true, 3);
  expect_gradient<kSpec>(none.view(), 4);
}

TEST(WeightGradientSlots, a_chunk_is_in_the_share_of_its_block) {
  for (const std::int64_t chunks : {1, 2, 7, 31, 32, 33, 200, 8191}) {
    for (const std::int64_t blocks : {1, 2, 3, 31, 33, 132, 264, 8191}) {
      for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
        const std::int64_t block = block_of_chunk(chunks, chunk, blocks);
        ASSERT_TRUE(block >= 0 && block < blocks) << chunks << ", " << blocks << ", " << chunk;
        ASSERT_LE(chunk_share(chunks, block, blocks), chunk) << chunks << ", " << blocks;
        ASSERT_GT(chunk_share(chunks, block + 1, blocks), chunk) << chunks << ", " << blocks;
      }
    }
  }
}

/// Slots of numbers that are added in another order with other bits: the sum has those of a loop
/// over blocks, for offsets of no slot, of a few, of as many as are read at a time, and of more.
void expect_summed_in_order(const std::vector<std::int64_t>& pairs_of_offset, std::int64_t blocks,
                            std::int32_t columns) {
  constexpr std::int32_t kPairs = 32, kChannels = 3;
  std::vector<std::int64_t> begin{0};
  std::vector<std::int64_t> chunk_begin{0};
  for (const std::int64_t pairs : pairs_of_offset) {
    begin.push_back(begin.back() + pairs);
    chunk_begin.push_back(chunk_begin.back() + (pairs + kPairs - 1) / kPairs);
  }
  const auto offsets = static_cast<std::int32_t>(pairs_of_offset.size());
  const std::int64_t chunks = chunk_begin.back();
  const std::int64_t elements = std::int64_t{kChannels} * columns;
  Tensor filled = poisoned_tensor({gradient_slots(offsets, blocks), elements}, DType::f32);
  Tensor result({offsets, elements}, DType::f32);
  std::memset(result.raw(), 0xff, result.bytes());
  std::vector<float> expected(static_cast<std::size_t>(offsets * elements), 0.0f);
  Random random(7);
  for (std::int64_t block = 0; block < blocks; ++block) {
    const std::int64_t first = chunk_share(chunks, block, blocks);
    const std::int64_t end = chunk_share(chunks, block + 1, blocks);
    for (std::int32_t k = 0; k < offsets; ++k) {
      const auto at = static_cast<std::size_t>(k);
      if (std::max(first, chunk_begin[at]) >= std::min(end, chunk_begin[at + 1])) continue;
      for (std::int64_t e = 0; e < elements; ++e) {
        const float number =
            static_cast<float>(random.uniform(-1, 1)) * (random.integer(0, 1) == 0 ? 1.0f : 1e4f);
        filled.data<float>()[(block + k) * elements + e] = number;
        expected[at * static_cast<std::size_t>(elements) + static_cast<std::size_t>(e)] += number;
      }
    }
  }
  const SumSlotsArguments sum{
      .pairs = {.offset_begin = begin.data(), .pairs = {nullptr, begin.back()}, .offsets = offsets},
      .slots = filled.data<float>(),
      .result = result.raw(),
      .in_channels = kChannels,
      .columns = columns,
      .result_channels = kChannels,
      .tile_pairs = kPairs,
      .share_blocks = static_cast<std::int32_t>(blocks)};
  emulate({.blocks = 1,
           .blocks_y = offsets,
           .threads = 64,
           .shared_bytes = offset_table_bytes(offsets)},
          sum_slots_f32, sum);
  EXPECT_EQ(std::memcmp(result.raw(), expected.data(), result.bytes()), 0)
      << blocks << " blocks, " << columns << " columns";
}

TEST(WeightGradientSlots, are_added_in_the_order_of_their_blocks) {
  for (const std::int64_t blocks : {1, 2, 7, 8, 9, 31, 33, 132, 300}) {
    for (const std::int32_t columns : {4, 8, 5}) {
      expect_summed_in_order({0, 1, 33, 700, 0, 9000, 64, 2}, blocks, columns);
      expect_summed_in_order({5000}, blocks, columns);
      expect_summed_in_order({1, 0, 1}, blocks, columns);
    }
  }
}

TEST(WeightGradientSlots, order_of_blocks_changes_no_bit) {
  constexpr GradientSpec kSpec = changed(warp_spec(32, 32, ElementType::f16), slots);
  EmulatedGradient<kSpec> first(small_map().view()), second(small_map().view());
  first.run(5, RunOrder::ascending);
  second.run(5, RunOrder::shuffled);
  EXPECT_TRUE(same_bits(first.result, second.result));
}

TEST(WeightGradientPoison, makes_the_result_nan) {
  constexpr GradientSpec kSpec = warp_spec(32, 32, ElementType::f16);
  EmulatedGradient<kSpec> gradient(small_map().view());
  const std::int64_t count = small_map().view().pairs() + 1;
  GradientArguments arguments{.pairs = pair_list(gradient.map),
                              .input = gradient.input.raw(),
                              .grad = gradient.grad.raw(),
                              .result = gradient.result.data<float>(),
                              .result_channels = 32};
  arguments.pairs.pairs = {&count, small_map().view().pairs()};
  emulate({.blocks = 2, .threads = threads(kSpec), .shared_bytes = shared_bytes(kSpec, 27)},
          run_gradient<kSpec>, arguments);
  for (const double value : doubles(gradient.result))
    ASSERT_TRUE(std::isnan(value));
}

}   // namespace
}   // namespace pumice
