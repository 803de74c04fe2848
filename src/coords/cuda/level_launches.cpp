// Arguments and shapes of the level kernels.
#include "coords/cuda/level_launches.hpp"

#include <algorithm>

#include <pumice/grid/look_back.h>
#include <pumice/core/error.hpp>

#include "coords/cuda/sources.hpp"
#include "core/cuda/status.hpp"

namespace pumice::cuda {

namespace {

LevelArguments arguments_of(const jit::KernelRunner& runner, const SortedElements& elements) {
  LevelArguments arguments;
  arguments.elements = elements.count;
  arguments.keys = elements.keys;
  arguments.values = elements.values;
  arguments.order = elements.order;
  arguments.row_of = elements.row_of;
  arguments.begin = elements.begin;
  arguments.outside = elements.outside;
  arguments.repeated = elements.repeated;
  arguments.status = runner.status();
  arguments.site = elements.site;
  return arguments;
}

std::int64_t words_for(std::int64_t capacity) {
  PUMICE_EXPECTS(capacity <= kMostTileSum, "room for ", capacity,
                 " sites; on a device the most is ", kMostTileSum, ", so take a smaller batch");
  // Also where there is no element: somebody has to write the counts.
  const std::int64_t tiles = std::max<std::int64_t>((capacity + kLevelTile - 1) / kLevelTile, 1);
  return tiles * kLevelCounters + 1;
}

void cut(jit::KernelRunner& runner, LevelArguments& arguments, LevelSums& sums) {
  PUMICE_ENSURES(arguments.elements.capacity <= sums.tiles() * kLevelTile,
                 arguments.elements.capacity, " elements in ", sums.tiles(), " tiles");
  arguments.states = sums.states();
  arguments.ticket = sums.ticket();
  runner.run(coords_kernel("write_cells"), {.blocks = sums.tiles(), .threads = kLevelThreads},
             arguments);
}

}   // namespace

LevelSums::LevelSums(jit::KernelRunner& runner, std::int64_t capacity, FillList& fill)
    : words_(runner.make<std::uint32_t>(words_for(capacity))) {
  fill.add(words_, 0);
}

void make_levels(jit::KernelRunner& runner, const SortedElements& elements, LevelSums& sums,
                 std::span<DeviceSet* const> sets, std::span<const int> shifts) {
  PUMICE_ENSURES(!sets.empty() && sets.size() <= kMaxLevels && sets.size() == shifts.size(),
                 sets.size(), " levels with ", shifts.size(), " shifts");
  LevelArguments arguments = arguments_of(runner, elements);
  arguments.levels = static_cast<std::int32_t>(sets.size());
  std::int64_t most_blocks = 0;
  for (std::size_t i = 0; i < sets.size(); ++i) {
    arguments.level[i] = sets[i]->level(shifts[i]);
    most_blocks = std::max(most_blocks, sets[i]->capacity().blocks);
  }
  cut(runner, arguments, sums);
  runner.run(coords_kernel("build_blocks"),
             {.blocks = (most_blocks + kBlockBuildThreads - 1) / kBlockBuildThreads,
              .blocks_y = arguments.levels,
              .threads = kBlockBuildThreads},
             arguments);
}

LevelKeys make_keys_in_box(jit::KernelRunner& runner, const SortedElements& elements,
                           LevelSums& sums, int shift, const KeyLayout& layout, const KeyBox& box,
                           std::int64_t capacity, const std::string& name) {
  PUMICE_ENSURES(elements.row_of == nullptr, "rows of elements that a box leaves out");
  LevelKeys inside{runner.make<std::uint64_t>(capacity), runner.make<std::int64_t>(1)};
  LevelArguments arguments = arguments_of(runner, elements);
  arguments.levels = 1;
  arguments.level[0] = {.keys = inside.keys.data(),
                        .row_count = inside.count.data(),
                        .row_capacity = capacity,
                        .shift = shift,
                        .row_site = status_site(name + ": rows")};
  arguments.box = box;
  arguments.box_layout = layout;
  cut(runner, arguments, sums);
  return inside;
}

}   // namespace pumice::cuda
