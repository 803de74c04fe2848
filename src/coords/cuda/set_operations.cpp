// Launches of the operations on sets.
#include "coords/cuda/set_operations.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <pumice/coords/decode_arguments.h>
#include <pumice/coords/prune_arguments.h>
#include <pumice/coords/rekey_arguments.h>
#include <pumice/coords/reorder_arguments.h>
#include <pumice/shared/floor_division.h>
#include <pumice/core/error.hpp>

#include "coords/cpu/key_list.hpp"
#include "coords/cuda/level_launches.hpp"
#include "coords/cuda/radix_sort.hpp"
#include "coords/cuda/sources.hpp"
#include "core/cuda/status.hpp"

namespace pumice::cuda {
namespace {

std::int64_t blocks_for(std::int64_t size, int threads) {
  return (size + threads - 1) / threads;
}

RekeySource source_of(const CoordinateSetRef& set, std::int64_t first_value) {
  return {.rows = set.rows,
          .keys = set.keys,
          .order = set.order,
          .layout = set.layout,
          .first_value = static_cast<std::uint32_t>(first_value)};
}

/// Sorted keys of one set or two in another layout, and where they came from.
struct Rekeyed {
  RadixSort<std::uint64_t> sort;
  Buffer<std::int64_t> total;
  std::int64_t capacity;

  SortedElements elements(std::int32_t site) const {
    return {.count = {total.data(), capacity},
            .keys = sort.sorted_keys(),
            .values = sort.sorted_values(),
            .site = site};
  }
};

/// A fill, a launch, and those of the sort.
Rekeyed rekey(jit::KernelRunner& runner, std::span<const RekeySource> sources,
              const KeyLayout& layout, const Axes& factor, FillList& fill) {
  std::int64_t capacity = 0;
  for (const RekeySource& source : sources)
    capacity += source.rows.capacity;
  Rekeyed result{RadixSort<std::uint64_t>(runner, {capacity, key_bits(layout)}, fill),
                 runner.make<std::int64_t>(1), capacity};
  fill.run(runner);
  RekeyArguments arguments{.source = {},
                           .sources = static_cast<std::int32_t>(sources.size()),
                           .layout = layout,
                           .keys = result.sort.keys(),
                           .values = result.sort.values(),
                           .total = result.total.data()};
  std::copy(factor.begin(), factor.end(), arguments.factor);
  std::int64_t blocks = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    arguments.source[i] = sources[i];
    arguments.source[i].first_block = static_cast<std::int32_t>(blocks);
    blocks += blocks_for(sources[i].rows.capacity, kRekeyThreads);
  }
  // Also where there is no row: somebody has to write the total.
  runner.run(coords_kernel("rekey_sets"),
             {.blocks = std::max<std::int64_t>(blocks, 1), .threads = kRekeyThreads}, arguments);
  result.sort.run(runner, {result.total.data(), capacity});
  return result;
}

}   // namespace

CoarseCells coarse_cells(const KeyLayout& fine, std::span<const std::int64_t> low,
                         std::span<const std::int64_t> high, std::int64_t batch_size,
                         const Axes& factor) {
  const auto dimension = static_cast<std::size_t>(fine.dimension);
  CoarseCells cells{fine, 0};
  Axes left = factor;
  const auto all = [&](auto&& is) {
    return std::all_of(left.begin(), left.begin() + fine.dimension, is);
  };
  while (all([](std::int32_t f) { return f % 2 == 0; }) && can_halve(cells.layout)) {
    cells.layout = halved(cells.layout);
    *cells.shift += fine.dimension;
    for (std::size_t axis = 0; axis < dimension; ++axis)
      left[axis] /= 2;
  }
  if (all([](std::int32_t f) { return f == 1; })) return cells;
  Bounds coarse;
  for (std::size_t axis = 0; axis < dimension; ++axis) {
    coarse.low[axis] = floor_divide(low[axis], factor[axis]);
    coarse.high[axis] = floor_divide(high[axis], factor[axis]);
  }
  return {roomy_layout(fine.dimension, coarse, batch_size), std::nullopt};
}

DeviceSet coarsen_set(jit::KernelRunner& runner, const CoordinateSetRef& set, const Axes& factor,
                      const CoarseCells& cells, const KeyBox& box, SetCapacity capacity,
                      const std::string& name) {
  FillList fill;
  DeviceSet coarse(runner, cells.layout, capacity, false, name, fill);
  LevelSums sums(runner, set.rows.capacity, fill);
  std::optional<LevelSums> sums_inside;
  if (box.active != 0) sums_inside.emplace(runner, capacity.rows, fill);
  DeviceSet* const sets[] = {&coarse};
  const std::int32_t site = status_site(name);
  const auto cut = [&](const SortedElements& elements, int shift) {
    const int shifts[] = {shift};
    if (!sums_inside) return make_levels(runner, elements, sums, sets, shifts);
    const LevelKeys inside =
        make_keys_in_box(runner, elements, sums, shift, cells.layout, box, capacity.rows, name);
    const int no_shift[] = {0};
    make_levels(runner, {.count = inside.count_ref(), .keys = inside.keys.data(), .site = site},
                *sums_inside, sets, no_shift);
  };
  if (cells.shift) {
    fill.run(runner);
    cut({.count = set.rows, .keys = set.keys, .site = site}, *cells.shift);
  } else {
    const RekeySource sources[] = {source_of(set, 0)};
    const Rekeyed rekeyed = rekey(runner, sources, cells.layout, factor, fill);
    cut(rekeyed.elements(site), 0);
  }
  return coarse;
}

DeviceUnion unite_sets(jit::KernelRunner& runner, const CoordinateSetRef& left,
                       const CoordinateSetRef& right, const KeyLayout& layout, SetCapacity capacity,
                       const std::string& name) {
  const std::int64_t rows = left.rows.capacity + right.rows.capacity;
  FillList fill;
  DeviceUnion united{DeviceSet(runner, layout, capacity, false, name, fill),
                     runner.make<std::int32_t>(rows), left.rows.capacity};
  LevelSums sums(runner, rows, fill);
  const RekeySource sources[] = {source_of(left, 0), source_of(right, left.rows.capacity)};
  const Rekeyed rekeyed = rekey(runner, sources, layout, axes(layout.dimension, 1), fill);
  SortedElements elements = rekeyed.elements(status_site(name));
  elements.row_of = united.row_of.data();
  DeviceSet* const sets[] = {&united.set};
  const int shifts[] = {0};
  make_levels(runner, elements, sums, sets, shifts);
  return united;
}

DevicePruned prune_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                       const std::uint8_t* keep, SetCapacity capacity, const std::string& name) {
  const std::int64_t rows = set.rows.capacity;
  const std::int64_t tiles = blocks_for(rows, kPruneThreads);
  FillList fill;
  DevicePruned pruned{DeviceSet(runner, set.layout, capacity, true, name, fill),
                      runner.make<std::int32_t>(capacity.rows)};
  LevelSums sums(runner, rows, fill);
  auto tile_begin = runner.make<std::uint32_t>(2 * tiles);
  auto new_row = runner.make<std::int32_t>(rows);
  auto kept_keys = runner.make<std::uint64_t>(rows);
  auto kept_rows = runner.make<std::uint32_t>(rows);
  auto count = runner.make<std::int64_t>(1);
  fill.run(runner);
  const PruneArguments arguments{.rows = set.rows,
                                 .keys = set.keys,
                                 .order = set.order,
                                 .keep = keep,
                                 .rank_begin = tile_begin.data(),
                                 .row_begin = tile_begin.data() + tiles,
                                 .new_row = new_row.data(),
                                 .kept = pruned.kept.data(),
                                 .kept_keys = kept_keys.data(),
                                 .kept_rows = kept_rows.data(),
                                 .count = count.data(),
                                 .kept_capacity = capacity.rows};
  const jit::LaunchShape tile_each{.blocks = tiles, .threads = kPruneThreads};
  runner.run(coords_kernel("count_kept"), tile_each, arguments);
  runner.run(coords_kernel("sum_kept"), {.threads = kPruneSumThreads}, arguments);
  runner.run(coords_kernel("write_kept_rows"), tile_each, arguments);
  runner.run(coords_kernel("write_kept_ranks"), tile_each, arguments);
  DeviceSet* const sets[] = {&pruned.set};
  const int shifts[] = {0};
  make_levels(runner,
              {.count = {count.data(), rows},
               .keys = kept_keys.data(),
               .values = kept_rows.data(),
               .order = pruned.set.order(),
               .site = status_site(name)},
              sums, sets, shifts);
  return pruned;
}

DeviceSet reorder_set(jit::KernelRunner& runner, const CoordinateSetRef& set,
                      const std::int32_t* row, SetCapacity capacity, const std::string& name) {
  FillList fill;
  DeviceSet reordered(runner, set.layout, capacity, true, name, fill);
  LevelSums sums(runner, set.rows.capacity, fill);
  auto checked = runner.make<std::uint32_t>(set.rows.capacity);
  fill.run(runner);
  runner.run(coords_kernel("check_order"),
             {.blocks = blocks_for(set.rows.capacity, kReorderThreads), .threads = kReorderThreads},
             ReorderArguments{.rows = set.rows,
                              .row = row,
                              .checked = checked.data(),
                              .status = runner.status(),
                              .site = status_site("row")});
  DeviceSet* const sets[] = {&reordered};
  const int shifts[] = {0};
  make_levels(runner,
              {.count = set.rows,
               .keys = set.keys,
               .values = checked.data(),
               .order = reordered.order(),
               .site = status_site(name)},
              sums, sets, shifts);
  return reordered;
}

Buffer<std::int64_t> batch_ranges(jit::KernelRunner& runner, const CoordinateSetRef& set,
                                  std::int64_t batch_size) {
  auto begin = runner.make<std::int64_t>(batch_size + 1);
  runner.run(coords_kernel("begin_batches"),
             {.blocks = blocks_for(batch_size + 1, kDecodeThreads), .threads = kDecodeThreads},
             BatchArguments{set.rows, set.layout, set.keys, begin.data(), batch_size});
  return begin;
}

}   // namespace pumice::cuda
