// Launches of weight gradients and of depthwise convolutions, on the host: the sequences that a
// device executes, memory of slots and results included, against float64 loops.
// Covers gradient_launch of src/kernels/cuda.
#pragma GCC diagnostic ignored "-Wsign-conversion"   // indices of device code are 32-bit
#include <string>

#include <gtest/gtest.h>

#include <pumice/skeleton/depthwise.h>
#include <pumice/skeleton/depthwise_gradient.h>
#include <pumice/skeleton/sum_slots.h>

#include "device/spec_runner.hpp"
#include "kernels/cuda/gradient_launch.hpp"
#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "kernels/emulated_gradient.hpp"
#include "kernels/host_tile_map.hpp"
#include "kernels/problem.hpp"
#include "kernels/small_specs.hpp"
#include "kernels/storage_type.hpp"
#include "plan/space/gradient_table.hpp"

namespace pumice::test {
namespace {

template <ElementType kType> constexpr GradientSpec spec_of(std::int32_t groups, Write write) {
  GradientSpec spec;
  spec.instruction = kType == ElementType::f32 ? Instruction::fma : Instruction::mma_sync;
  spec.operand = kType;
  spec.write = write;
  spec.in_channels = 12;
  spec.out_channels = 20;
  spec.groups = groups;
  spec.tile_in = 16;
  spec.tile_out = 32;
  spec.stages = 2;
  spec.in_warps = 1;
  spec.out_warps = 1;
  spec.blocks_per_sm = 3;
  return spec;
}

template <GradientSpec S> void expect_launches(int launches) {
  const KernelMapView map = small_map().view();
  const Channels channels{S.groups * S.in_channels, S.groups * S.out_channels, S.groups};
  const Tensor input = random_tensor(Shape{map.in_rows, channels.in}, storage_type(S.operand), 1);
  const Tensor grad = random_tensor(Shape{map.out_rows, channels.out}, storage_type(S.operand), 2);
  const ElementType type = S.write == Write::add ? ElementType::f32 : S.operand;
  Tensor result = garbage({map.offsets, S.in_channels, channels.out}, storage_type(type));
  SpecRunner runner;
  runner.knows(cuda::gradient_name(S), cuda::kGradientKernel, run_gradient<S>);
  runner.knows("sum_slots_f32", cuda::kSumSlotsKernel, sum_slots<ElementType::f32>);
  runner.knows("sum_slots_f16", cuda::kSumSlotsKernel, sum_slots<ElementType::f16>);
  cuda::launch_gradient(runner, S,
                        {.pairs = pair_list(map),
                         .input = input.raw(),
                         .grad = grad.raw(),
                         .result = result.raw(),
                         .type = type});
  EXPECT_EQ(runner.launches(), launches);
  expect_close(result, weight_product(map, input, grad, channels), 16);
}

TEST(WeightGradientLaunch, AddsToAResultThatItClears) {
  expect_launches<spec_of<ElementType::f32>(1, Write::add)>(1);
  expect_launches<spec_of<ElementType::f16>(2, Write::add)>(1);
}

TEST(WeightGradientLaunch, SumsSlotsIntoTheTypeOfTheResult) {
  expect_launches<spec_of<ElementType::f32>(2, Write::slots)>(2);
  expect_launches<spec_of<ElementType::f16>(1, Write::slots)>(2);
}

template <ElementType kType> void expect_depthwise(std::int32_t channels) {
  const KernelMapView map = small_map().view();
  const DType type = storage_type(kType);
  const Tensor input = random_tensor(Shape{map.in_rows, channels}, type, 1);
  const Tensor weight = random_tensor(Shape{map.offsets, 1, channels}, type, 2);
  const Tensor grad = random_tensor(Shape{map.out_rows, channels}, type, 3);
  const std::string source = kType == ElementType::f32 ? "depthwise_f32" : "depthwise_bf16";
  SpecRunner runner;
  runner.knows(source, cuda::kDepthwiseKernel, depthwise<kType>);
  runner.knows(source, cuda::kDepthwiseGradientKernel, depthwise_gradient<kType>);
  runner.knows(kType == ElementType::f32 ? "sum_slots_f32" : "sum_slots_bf16",
               cuda::kSumSlotsKernel, sum_slots<kType>);
  const HostTileMap tiles = host_tile_map(map, 128);
  Tensor output = garbage({map.out_rows, channels}, type);
  cuda::launch_depthwise(runner, kType,
                         {.map = tiles.ref(),
                          .input = input.raw(),
                          .weight = weight.raw(),
                          .output = output.raw(),
                          .channels = channels});
  expect_close(output, convolve(map, input, weight, {channels, channels, channels}), 8);
  Tensor result = garbage({map.offsets, 1, channels}, type);
  cuda::launch_depthwise_gradient(
      runner, kType,
      {.pairs = pair_list(map), .input = input.raw(), .grad = grad.raw(), .channels = channels},
      kType, result.raw());
  EXPECT_EQ(runner.launches(), 3);
  expect_close(result, weight_product(map, input, grad, {channels, channels, channels}), 8);
}

TEST(DepthwiseLaunch, RunsForwardAndTheWeightGradient) {
  expect_depthwise<ElementType::f32>(12);
  expect_depthwise<ElementType::bf16>(33);
}

TEST(WeightGradientTable, HasAKernelForEveryWidth) {
  for (const std::uint32_t architecture : {kSm80, kSm86, kSm89, kSm90a, kSm100, kSm120}) {
    for (const ElementType type : {ElementType::f32, ElementType::f16, ElementType::bf16}) {
      for (const std::int32_t in :
           {1, 2, 3, 4, 5, 8, 12, 16, 24, 33, 64, 96, 130, 256, 384, 1030}) {
        for (const std::int32_t out : {1, 3, 8, 9, 19, 20, 33, 64, 96, 128, 129, 256, 512}) {
          for (const Write write : {Write::add, Write::slots}) {
            const GradientSpec spec = cuda::choose_gradient({.operand = type,
                                                             .write = write,
                                                             .in_channels = in,
                                                             .out_channels = out,
                                                             .rows = 50000,
                                                             .architecture = architecture})
                                          .spec;
            EXPECT_EQ(why_invalid(spec), nullptr) << cuda::gradient_name(spec);
            EXPECT_NE(architectures(spec) & architecture, 0u) << cuda::gradient_name(spec);
          }
        }
      }
    }
  }
}

TEST(WeightGradientTable, MakesRoomForTheTableOfManyOffsets) {
  cuda::GradientProblem problem{
      .in_channels = 96, .out_channels = 96, .rows = 50000, .architecture = kSm90a};
  const GradientSpec few = cuda::choose_gradient(problem).spec;
  problem.offsets = 27;
  EXPECT_EQ(cuda::choose_gradient(problem).spec, few);
  problem.offsets = 4096;
  const GradientSpec many = cuda::choose_gradient(problem).spec;
  EXPECT_LE(many.blocks_per_sm * (shared_bytes(many, 4096) + kReservedShared), 228 * 1024);
  problem.offsets = 65536;   // 786 KB
  EXPECT_THROW(cuda::choose_gradient(problem), UserError);
}

}   // namespace
}   // namespace pumice::test
