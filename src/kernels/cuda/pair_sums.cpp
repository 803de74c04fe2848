// Memory of partial results and the launches that finish them.
#include "kernels/cuda/pair_sums.hpp"

#include <algorithm>

#include <pumice/core/copy.hpp>

#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_source.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

constexpr int kFinishThreads = 256;
/// Blocks of a multiprocessor; they walk on.
constexpr std::int64_t kFinishBlocks = 8;

jit::LaunchShape shape_for(const jit::KernelRunner& runner, const SumTarget& target) {
  const std::int64_t elements = target.out_rows.capacity * target.channels;
  const std::int64_t chunk = (target.channels % 4 == 0 ? 4 : 1) * kFinishThreads;
  return {.blocks = std::min((elements + chunk - 1) / chunk,
                             multiprocessors_of(runner.stream()) * kFinishBlocks),
          .threads = kFinishThreads};
}

}   // namespace

const jit::Source& finish_source_of(ElementType type) {
  return source_for(type, kFinishKernel, finish_source, /*writes_only_features=*/true);
}

PartialSums::PartialSums(jit::KernelRunner& runner, const SumTarget& target, Write write,
                         std::int32_t slots)
    : target_(target),
      slots_(write == Write::add ? 1 : slots),
      partial_(runner.make<float>(target.out_rows.capacity * target.channels * slots_)) {
  if (write == Write::add && partial_.size() > 0)
    fill_bytes_async(partial_.data(), std::byte{0}, partial_.bytes(), runner.stream());
}

void PartialSums::finish(jit::KernelRunner& runner, const RowCountRef& tiles) {
  runner.run({&finish_source_of(target_.type), kFinishKernel}, shape_for(runner, target_),
             FinishArguments{.partial = partial_.data(),
                             .output = target_.output,
                             .tiles = tiles,
                             .out_rows = target_.out_rows,
                             .channels = target_.channels,
                             .slots = slots_,
                             .epilogue = target_.epilogue});
}

SeparateSums::SeparateSums(jit::KernelRunner& runner, const SumTarget& target, std::int64_t pairs,
                           const std::int32_t* pair_of, std::int32_t offsets)
    : target_(target),
      product_(runner.make<float>(pairs * target.channels)),
      pair_of_(pair_of),
      offsets_(offsets) {}

void SeparateSums::finish(jit::KernelRunner& runner, const RowCountRef& tiles) {
  runner.run({&finish_source_of(target_.type), kFinishPairsKernel}, shape_for(runner, target_),
             FinishPairsArguments{.product = product_.data(),
                                  .pair_of = pair_of_,
                                  .output = target_.output,
                                  .tiles = tiles,
                                  .out_rows = target_.out_rows,
                                  .channels = target_.channels,
                                  .offsets = offsets_,
                                  .epilogue = target_.epilogue});
}

}   // namespace pumice::cuda
