// Packing when first asked.
#include "kernels/cuda/packed_tiles.hpp"

#include <algorithm>

#include <pumice/kernels/tile_weights.hpp>

#include "kernels/cuda/architecture.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "kernels/cuda/tile_source.hpp"

namespace pumice {

TileWeights::TileWeights() : packed_(std::make_unique<cuda::PackedTiles>()) {}
TileWeights::~TileWeights() = default;
TileWeights::TileWeights(TileWeights&&) noexcept = default;
TileWeights& TileWeights::operator=(TileWeights&&) noexcept = default;

void TileWeights::clear() {
  packed_->clear();
}

namespace cuda {
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

}   // namespace

const jit::Source& packing_source() {
  static const jit::Source packing{.name = kPackKernel, .text = pack_source()};
  return packing;
}

const void* PackedTiles::get(jit::KernelRunner& runner, const WeightLayout& layout,
                             const ConstTensorView& weight, PackOrder order) {
  for (const Entry& entry : entries_) {
    if (same(entry.layout, layout) && entry.order == order) return entry.data.data();
  }
  Entry entry{layout, order, runner.make<std::byte>(packed_bytes(layout))};
  runner.run({&packing_source(), kPackKernel},
             {.blocks = pack_blocks(runner, layout), .threads = kPackThreads},
             PackWeightArguments{.layout = layout,
                                 .weight = weight.raw(),
                                 .packed = entry.data.data(),
                                 .scale = order.scale,
                                 .source = storage_element(weight.dtype()),
                                 .transpose = order.transpose,
                                 .mirror = order.mirror});
  entries_.push_back(std::move(entry));
  return entries_.back().data.data();
}

}   // namespace cuda
}   // namespace pumice
