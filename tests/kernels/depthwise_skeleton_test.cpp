// Depthwise kernels on the host, thread by thread, against float64 loops.
// Covers depthwise and depthwise_gradient of device/pumice/skeleton.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <gtest/gtest.h>

#include <pumice/skeleton/depthwise.h>
#include <pumice/skeleton/depthwise_gradient.h>
#include <pumice/skeleton/sum_slots.h>

#include "kernels/host_tile_map.hpp"
#include "kernels/problem.hpp"
#include "kernels/small_specs.hpp"
#include "kernels/storage_type.hpp"
#include "support/device_emulator.hpp"

namespace pumice {
namespace {

using namespace pumice::test;

template <ElementType kType> void run_depthwise(const DepthwiseArguments& arguments) {
  depthwise<kType>(arguments);
}
template <ElementType kType> void run_gradient(const DepthwiseGradientArguments& arguments) {
  depthwise_gradient<kType>(arguments);
}
void sum_slots_f32(const SumSlotsArguments& arguments) {
  sum_slots<ElementType::f32>(arguments);
}

template <ElementType kType> void expect_depthwise(std::int32_t channels, bool mirror) {
  const KernelMapView map = small_map().view();
  const DType type = storage_type(kType);
  const Tensor input = random_tensor(Shape{map.in_rows, channels}, type, 1);
  const Tensor weight = random_tensor(Shape{map.offsets, 1, channels}, type, 2);
  const Tensor shift = random_tensor(Shape{channels}, DType::f32, 3);
  Tensor output(Shape{map.out_rows, channels}, type);
  std::memset(output.raw(), 0xff, output.bytes());
  const HostTileMap tiles = host_tile_map(map, 128);
  const DepthwiseArguments arguments{.map = tiles.ref(),
                                     .input = input.raw(),
                                     .weight = weight.raw(),
                                     .output = output.raw(),
                                     .channels = channels,
                                     .mirror = mirror,
                                     .epilogue = {.shift = shift.data<float>()}};
  emulate({.blocks = tiles.tiles(), .threads = kDepthwiseThreads}, run_depthwise<kType>, arguments);
  Tensor expected_weight(weight.shape(), type);
  const std::size_t slice = weight.bytes() / 27;
  for (std::size_t k = 0; k < 27; ++k) {
    std::memcpy(static_cast<std::byte*>(expected_weight.raw()) + k * slice,
                static_cast<const std::byte*>(weight.raw()) + (mirror ? 26 - k : k) * slice, slice);
  }
  Expected expected = convolve(map, input, expected_weight, {channels, channels, channels});
  for (std::size_t i = 0; i < expected.value.size(); ++i)
    expected.add(i,
                 static_cast<double>(shift.data<float>()[i % static_cast<std::size_t>(channels)]));
  expect_close(output, expected, 8);
}

TEST(Depthwise, every_channel_meets_itself) {
  expect_depthwise<ElementType::f32>(12, false);
  expect_depthwise<ElementType::f16>(5, false);
  expect_depthwise<ElementType::bf16>(32, true);
}

template <ElementType kType> void expect_gradient(std::int32_t channels, std::int64_t blocks) {
  const KernelMapView map = small_map().view();
  const auto offsets = static_cast<std::int32_t>(map.offsets);
  const Tensor input = random_tensor(Shape{map.in_rows, channels}, storage_type(kType), 1);
  const Tensor grad = random_tensor(Shape{map.out_rows, channels}, storage_type(kType), 2);
  Tensor slots(Shape{gradient_slots(offsets, blocks), channels}, DType::f32);
  Tensor result(Shape{offsets, 1, channels}, DType::f32);
  std::memset(slots.raw(), 0xff, slots.bytes());
  std::memset(result.raw(), 0xff, result.bytes());
  const PairListRef pairs{
      map.offset_begin.data(), map.in.data(), map.out.data(), {nullptr, map.pairs()}, offsets};
  emulate({.blocks = blocks,
           .blocks_y = depthwise_gradient_tiles(channels),
           .threads = kDepthwiseThreads,
           .shared_bytes = depthwise_gradient_shared_bytes(offsets)},
          run_gradient<kType>,
          DepthwiseGradientArguments{.pairs = pairs,
                                     .input = input.raw(),
                                     .grad = grad.raw(),
                                     .slots = slots.data<float>(),
                                     .channels = channels},
          {.blocks = RunOrder::shuffled, .threads = RunOrder::shuffled});
  emulate({.blocks = 1,
           .blocks_y = offsets,
           .threads = 64,
           .shared_bytes = offset_table_bytes(offsets)},
          sum_slots_f32,
          SumSlotsArguments{.pairs = pairs,
                            .slots = slots.data<float>(),
                            .result = result.raw(),
                            .in_channels = 1,
                            .columns = channels,
                            .result_channels = 1,
                            .tile_pairs = kDepthwisePairs,
                            .share_blocks = static_cast<std::int32_t>(blocks)});
  expect_close(result, weight_product(map, input, grad, {channels, channels, channels}), 8);
}

TEST(Depthwise, weight_gradient_sums_over_pairs) {
  expect_gradient<ElementType::f32>(12, 3);
  expect_gradient<ElementType::f16>(5, 7);
  expect_gradient<ElementType::bf16>(1028, 2);   // 257 chunks: more than threads
}

}   // namespace
}   // namespace pumice
