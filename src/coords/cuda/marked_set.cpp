// From marked blocks to a set.
#include "coords/cuda/marked_set.hpp"

#include <algorithm>
#include <utility>

#include "coords/cuda/sources.hpp"

namespace pumice::cuda {

MarkedSet::MarkedSet(jit::KernelRunner& runner, const KeyLayout& layout, SetCapacity capacity,
                     const std::string& name, FillList& fill)
    : set_(runner, layout, capacity, false, name, fill),
      sort_(runner, {capacity.blocks, key_bits(layout) - kBlockBits}, fill),
      count_(runner.make<std::int64_t>(1)),
      states_(runner.make<std::uint64_t>(tiles())),
      ticket_(runner.make<std::uint32_t>(1)) {
  fill.add(count_, 0);
  fill.add(states_, 0);
  fill.add(ticket_, 0);
}

MarkedBlocks MarkedSet::marked() {
  const Level level = set_.level(0);
  return {
      .slots = level.slots,
      .keys = sort_.keys(),
      .slot_of = sort_.values(),
      .count = count_.data(),
      .capacity = level.block_capacity,
      .slot_mask = level.slot_mask,
  };
}

DeviceSet MarkedSet::finish(jit::KernelRunner& runner, RowCountRef source) {
  const RowCountRef marked{count_.data(), set_.capacity().blocks};
  sort_.run(runner, marked);
  const BlockSetArguments arguments{.marked = marked,
                                    .keys = sort_.sorted_keys(),
                                    .slot_of = sort_.sorted_values(),
                                    .states = states_.data(),
                                    .ticket = ticket_.data(),
                                    .set = set_.level(0),
                                    .source = source,
                                    .status = runner.status()};
  // Also where there is room for no block: somebody has to write the counts.
  runner.run(coords_kernel("write_block_cells"),
             {.blocks = std::max<std::int64_t>(tiles(), 1), .threads = kBlockSetThreads},
             arguments);
  return std::move(set_);
}

}   // namespace pumice::cuda
