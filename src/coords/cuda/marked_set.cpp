// From marked blocks to a set.
#include "coords/cuda/marked_set.hpp"

#include <utility>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

MarkedSet::MarkedSet(jit::KernelRunner& runner, const KeyLayout& layout, SetCapacity capacity,
                     const std::string& name, FillList& fill)
    : set_(runner, layout, capacity, false, name, fill),
      sort_(runner, capacity.blocks, key_bits(layout) - kBlockBits, fill),
      count_(runner.make<std::int64_t>(1)) {
  fill.add(count_, 0);
}

MarkedBlocks MarkedSet::marked() {
  const Level level = set_.level(0);
  return {.slots = level.slots,
          .keys = sort_.keys(),
          .slot_of = sort_.values(),
          .count = count_.data(),
          .capacity = level.block_capacity,
          .slot_mask = level.slot_mask,
          .first = sort_.first_histogram()};
}

DeviceSet MarkedSet::finish(jit::KernelRunner& runner, RowCountRef source) {
  const std::int64_t capacity = set_.capacity().blocks;
  const RowCountRef marked{count_.data(), capacity};
  sort_.run(runner, marked);
  const std::int64_t tiles = (capacity + kBlockSetThreads - 1) / kBlockSetThreads;
  auto tile_cells = runner.make<std::uint32_t>(tiles);
  const BlockSetArguments arguments{.marked = marked,
                                    .keys = sort_.sorted_keys(),
                                    .slot_of = sort_.sorted_values(),
                                    .tile_cells = tile_cells.data(),
                                    .set = set_.level(0),
                                    .source = source,
                                    .status = runner.status()};
  runner.run(coords_kernel("count_block_cells"), {.blocks = tiles, .threads = kBlockSetThreads},
             arguments);
  runner.run(coords_kernel("sum_block_cells"), {.threads = kBlockSumThreads}, arguments);
  runner.run(coords_kernel("write_block_cells"), {.blocks = tiles, .threads = kBlockSetThreads},
             arguments);
  return std::move(set_);
}

}   // namespace pumice::cuda
