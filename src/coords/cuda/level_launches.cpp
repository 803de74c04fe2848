// Arguments and shapes of the level kernels.
#include "coords/cuda/level_launches.hpp"

#include <algorithm>

#include <pumice/grid/look_back.h>
#include <pumice/core/error.hpp>

#include "coords/cuda/fill_list.hpp"
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

/// A fill, and the cells.
void cut(jit::KernelRunner& runner, LevelArguments& arguments) {
  PUMICE_EXPECTS(arguments.elements.capacity <= kMostTileSum, "room for ",
                 arguments.elements.capacity, " sites; on a device the most is ", kMostTileSum,
                 ", so take a smaller batch");
  const std::int64_t tiles =
      std::max<std::int64_t>((arguments.elements.capacity + kLevelTile - 1) / kLevelTile, 1);
  auto states = runner.make<std::uint32_t>(tiles * kLevelCounters);
  auto ticket = runner.make<std::uint32_t>(1);
  FillList fill;
  fill.add(states, 0);
  fill.add(ticket, 0);
  fill.run(runner);
  arguments.states = states.data();
  arguments.ticket = ticket.data();
  // Also where there is no element: somebody has to write the counts.
  runner.run(coords_kernel("write_cells"), {.blocks = tiles, .threads = kLevelThreads}, arguments);
}

}   // namespace

void make_levels(jit::KernelRunner& runner, const SortedElements& elements,
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
  cut(runner, arguments);
  runner.run(coords_kernel("build_blocks"),
             {.blocks = (most_blocks + kBlockBuildThreads - 1) / kBlockBuildThreads,
              .blocks_y = arguments.levels,
              .threads = kBlockBuildThreads},
             arguments);
}

LevelKeys make_keys_in_box(jit::KernelRunner& runner, const SortedElements& elements, int shift,
                           const KeyLayout& layout, const KeyBox& box, std::int64_t capacity,
                           const std::string& name) {
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
  cut(runner, arguments);
  return inside;
}

}   // namespace pumice::cuda
