// Packing when first asked.
#include "kernels/cuda/packed_tiles.hpp"

#include <algorithm>

#include <pumice/core/stream.hpp>

#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

constexpr int kPackThreads = 256;
/// As many as a multiprocessor holds. Blocks walk on, and a thread that packs several chunks waits
/// for the loads of each: a step of training packs every weight twice.
constexpr std::int64_t kPackBlocksPerMultiprocessor = 8;

std::int64_t pack_blocks(const jit::KernelRunner& runner, const WeightLayout& layout) {
  const std::int64_t chunks = packed_bytes(layout) / kChunkBytes;
  const std::int64_t most = multiprocessors_of(runner.stream()) * kPackBlocksPerMultiprocessor;
  return std::clamp<std::int64_t>((chunks + kPackThreads - 1) / kPackThreads, 1, most);
}

bool same(const WeightLayout& a, const WeightLayout& b) {
  return a.operand == b.operand && a.offsets == b.offsets && a.groups == b.groups &&
         a.in_channels == b.in_channels && a.out_channels == b.out_channels &&
         a.columns == b.columns && a.depth == b.depth && a.swizzle == b.swizzle;
}

/// Whether a weight [K, C_in / groups, C_out] has what a layout reads: what was asked of another
/// weight must not lead behind the end of this one.
bool holds(const PackUse& use, const ConstTensorView& weight) {
  const WeightLayout& layout = use.layout;
  const std::int64_t in = use.order.transpose ? layout.out_channels : layout.in_channels;
  const std::int64_t out = std::int64_t{layout.groups} *
                           (use.order.transpose ? layout.in_channels : layout.out_channels);
  return weight.rank() == 3 && weight.extent(0) == layout.offsets && weight.extent(1) == in &&
         weight.extent(2) == out;
}

}   // namespace

const jit::Source& packing_source() {
  static const jit::Source packing{.name = kPackKernel, .text = pack_source()};
  return packing;
}

const PackedTiles::Entry* PackedTiles::find(const PackUse& use, StreamView stream) const {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    return same(entry.use.layout, use.layout) && entry.use.order == use.order &&
           (entry.recording == 0 || entry.recording == capture_of(stream));
  });
  return found == entries_.end() ? nullptr : &*found;
}

const void* PackedTiles::get(jit::KernelRunner& runner, const WeightLayout& layout,
                             const ConstTensorView& weight, PackOrder order) {
  const PackUse use{layout, order};
  if (const Entry* entry = find(use, runner.stream())) return entry->data.data();
  const PackWeightArguments arguments = add(runner, use, weight);
  runner.run({&packing_source(), kPackKernel},
             {.blocks = pack_blocks(runner, layout), .threads = kPackThreads}, arguments);
  return entries_.back().data.data();
}

PackWeightArguments PackedTiles::add(jit::KernelRunner& runner, const PackUse& use,
                                     const ConstTensorView& weight) {
  const StreamView stream = runner.stream();
  entries_.push_back(
      {use, Buffer<std::byte>(packed_bytes(use.layout), stream, lasting_allocator(stream.device)),
       capture_of(stream)});
  return {.layout = use.layout,
          .weight = weight.raw(),
          .packed = entries_.back().data.data(),
          .scale = use.order.scale,
          .source = storage_element(weight.dtype()),
          .transpose = use.order.transpose,
          .mirror = use.order.mirror};
}

std::optional<PackWeightArguments> PackedTiles::make_room(jit::KernelRunner& runner,
                                                          const PackUse& use,
                                                          const ConstTensorView& weight) {
  if (find(use, runner.stream()) != nullptr || !holds(use, weight)) return std::nullopt;
  return add(runner, use, weight);
}

void launch_packing(jit::KernelRunner& runner, std::span<const PackWeightArguments> weights) {
  while (!weights.empty()) {
    const auto taken = weights.first(std::min<std::size_t>(weights.size(), kMostPackedWeights));
    PackWeightsArguments arguments;
    std::copy(taken.begin(), taken.end(), arguments.weight);
    std::int64_t blocks = 1;
    for (const PackWeightArguments& weight : taken)
      blocks = std::max(blocks, pack_blocks(runner, weight.layout));
    runner.run(
        {&packing_source(), kPackManyKernel},
        {.blocks = blocks, .blocks_y = static_cast<int>(taken.size()), .threads = kPackThreads},
        arguments);
    weights = weights.subspan(taken.size());
  }
}

}   // namespace pumice::cuda
