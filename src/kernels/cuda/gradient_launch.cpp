// Slots live as long as the launches that use them.
#include "kernels/cuda/gradient_launch.hpp"

#include <algorithm>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "kernels/cuda/gradient_source.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/cuda_architecture.hpp"
#include "plan/space/gradient_table.hpp"

namespace pumice::cuda {
namespace {

constexpr int kSumThreads = 256;
/// Blocks of a depthwise gradient that a multiprocessor holds: 256 threads of 32 registers each.
constexpr std::int64_t kDepthwiseBlocks = 8;

}   // namespace

const jit::Source& source_of(const GradientSpec& spec) {
  static SourceTable<GradientSpec, SpecHash<GradientSpec>> sources;
  return sources.get(spec, [](const GradientSpec& wanted) {
    return jit::Source{.name = gradient_name(wanted), .text = gradient_source(wanted)};
  });
}

const jit::Source& sum_slots_source_of(ElementType type) {
  return source_for(type, kSumSlotsKernel, sum_slots_source);
}

const jit::Source& depthwise_source_of(ElementType type) {
  return source_for(type, kDepthwiseKernel, depthwise_source);
}

namespace {

void sum_slots(jit::KernelRunner& runner, ElementType type, const SumSlotsArguments& arguments) {
  const std::int64_t elements = std::int64_t{arguments.in_channels} * arguments.columns;
  runner.run({&sum_slots_source_of(type), kSumSlotsKernel},
             {.blocks = (elements + 4 * kSumThreads - 1) / (4 * kSumThreads),
              .blocks_y = arguments.pairs.offsets,
              .threads = kSumThreads,
              .shared_bytes = offset_table_bytes(arguments.pairs.offsets)},
             arguments);
}

}   // namespace

void launch_gradient(jit::KernelRunner& runner, const GradientSpec& spec,
                     const WeightGradient& gradient) {
  const std::int32_t offsets = gradient.pairs.offsets;
  const std::int32_t columns = spec.groups * spec.out_channels;
  const std::int64_t slice = std::int64_t{spec.in_channels} * columns;
  const std::int64_t blocks = gradient.share_blocks > 0
                                  ? gradient.share_blocks
                                  : gradient_blocks(spec, multiprocessors_of(runner.stream()));
  GradientArguments arguments{.pairs = gradient.pairs,
                              .input = gradient.input,
                              .grad = gradient.grad,
                              .result = static_cast<float*>(gradient.result),
                              .result_channels = spec.in_channels};
  const jit::LaunchShape shape{.blocks = blocks,
                               .blocks_y = gradient_tiles(spec),
                               .threads = threads(spec),
                               .shared_bytes = shared_bytes(spec, offsets)};
  const jit::KernelName kernel{&source_of(spec), kGradientKernel};
  if (spec.write == Write::add) {
    PUMICE_ENSURES(gradient.type == ElementType::f32, "sums that are added to are f32");
    if (!gradient.is_zero)
      fill_bytes_async(gradient.result, std::byte{0},
                       static_cast<std::size_t>(offsets * slice) * sizeof(float), runner.stream());
    runner.run(kernel, shape, arguments);
    return;
  }
  auto slots = runner.make<float>(gradient_slots(offsets, blocks) * slice);
  arguments.result = slots.data();
  runner.run(kernel, shape, arguments);
  sum_slots(runner, gradient.type,
            {.pairs = gradient.pairs,
             .slots = slots.data(),
             .result = gradient.result,
             .in_channels = spec.in_channels,
             .columns = columns,
             .result_channels = spec.in_channels,
             .tile_pairs = spec.tile_pairs,
             .share_blocks = static_cast<std::int32_t>(blocks)});
}

void launch_depthwise(jit::KernelRunner& runner, ElementType type,
                      const DepthwiseArguments& arguments, Write write) {
  const auto adds = [](ElementType t) { return depthwise_partial_source(t, Write::add); };
  const auto stores = [](ElementType t) { return depthwise_partial_source(t, Write::slots); };
  const jit::Source& source = write == Write::store ? depthwise_source_of(type)
                              : write == Write::add ? source_for(type, "depthwise_add", adds)
                                                    : source_for(type, "depthwise_slots", stores);
  runner.run({&source, kDepthwiseKernel},
             {.blocks = arguments.map.tiles.capacity, .threads = kDepthwiseThreads}, arguments);
}

void launch_depthwise_gradient(jit::KernelRunner& runner, ElementType type,
                               DepthwiseGradientArguments arguments, ElementType result_type,
                               void* result) {
  const std::int32_t offsets = arguments.pairs.offsets;
  const int tiles = depthwise_gradient_tiles(arguments.channels);
  const std::int64_t blocks =
      std::max<std::int64_t>(1, multiprocessors_of(runner.stream()) * kDepthwiseBlocks / tiles);
  auto slots = runner.make<float>(gradient_slots(offsets, blocks) * arguments.channels);
  arguments.slots = slots.data();
  runner.run({&depthwise_source_of(type), kDepthwiseGradientKernel},
             {.blocks = blocks,
              .blocks_y = tiles,
              .threads = kDepthwiseThreads,
              .shared_bytes = depthwise_gradient_shared_bytes(offsets)},
             arguments);
  sum_slots(runner, result_type,
            {.pairs = arguments.pairs,
             .slots = slots.data(),
             .result = result,
             .in_channels = 1,
             .columns = arguments.channels,
             .result_channels = 1,
             .tile_pairs = kDepthwisePairs,
             .share_blocks = static_cast<std::int32_t>(blocks)});
}

}   // namespace pumice::cuda
