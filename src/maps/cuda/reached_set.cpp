// Layouts and launches of sets that are reached.
#include "maps/cuda/reached_set.hpp"

#include <algorithm>
#include <bit>
#include <limits>

#include <pumice/maps/reach_arguments.h>
#include <pumice/core/error.hpp>

#include "coords/cpu/key_list.hpp"
#include "coords/cuda/marked_set.hpp"
#include "maps/cpu/offset_axes.hpp"
#include "maps/cuda/match_batch.hpp"
#include "maps/cuda/sources.hpp"

namespace pumice::cuda {
namespace {

bool holds(const KeyLayout& layout, const CellRange& range) {
  for (int axis = 0; axis < layout.dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    if (!in_layout(layout, axis, range.low[at]) || !in_layout(layout, axis, range.high[at]))
      return false;
  }
  return true;
}

/// The layout that halves to `coarse`, if 63 bits suffice.
std::optional<KeyLayout> doubled(const KeyLayout& coarse) {
  if (key_bits(coarse) + coarse.dimension > 63) return std::nullopt;
  KeyLayout fine = coarse;
  fine.batch_shift += coarse.dimension;
  for (int axis = 0; axis < coarse.dimension; ++axis) {
    fine.bits[axis] += 1;
    fine.bias[axis] *= 2;
    fine.mask[axis] = coarse.mask[axis] << coarse.dimension | std::uint64_t{1} << axis;
  }
  return can_halve(fine) && halved(fine) == coarse ? std::optional(fine) : std::nullopt;
}

/// A layout whose keys hang together with those of `from`, if there is one.
std::optional<KeyLayout> related_layout(const KeyLayout& from, const KernelWindow& window,
                                        Reach reach) {
  const auto stride = [&](std::int32_t value) {
    return std::all_of(window.stride.begin(), window.stride.begin() + window.dimension,
                       [value](std::int32_t mine) { return mine == value; });
  };
  if (stride(1)) return from;
  if (!stride(2)) return std::nullopt;
  if (reach == Reach::out_to_in) return doubled(from);
  return can_halve(from) ? std::optional(halved(from)) : std::nullopt;
}

}   // namespace

std::optional<ReachedCells> reached_cells(const KeyLayout& from, const CellRange& range,
                                          const KernelWindow& window, Reach reach,
                                          const std::optional<Axes>& shape,
                                          std::int64_t batch_size) {
  const OffsetAxes offsets(window, reach);
  ReachedCells cells;
  for (int axis = 0; axis < from.dimension; ++axis) {
    const auto at = static_cast<std::size_t>(axis);
    AxisRange reached = offsets.reach(axis, {range.low[at], range.high[at]});
    if (shape) {
      reached.low = std::max<std::int64_t>(reached.low, 0);
      reached.high = std::min<std::int64_t>(reached.high, std::int64_t{(*shape)[at]} - 1);
    }
    if (reached.low > reached.high) return std::nullopt;
    PUMICE_EXPECTS(reached.low >= std::numeric_limits<std::int32_t>::min() &&
                       reached.high <= std::numeric_limits<std::int32_t>::max(),
                   "coordinates: outputs on axis ", axis, " would lie from ", reached.low, " to ",
                   reached.high, ", which int32 cannot hold; move the input towards 0");
    cells.range.low[at] = reached.low;
    cells.range.high[at] = reached.high;
  }
  const auto related = related_layout(from, window, reach);
  if (related && holds(*related, cells.range)) {
    cells.layout = *related;
  } else {
    cells.layout = roomy_layout(from.dimension, {cells.range.low, cells.range.high}, batch_size);
  }
  return cells;
}

DeviceSet reached_set(jit::KernelRunner& runner, const CoordinateSetRef& from,
                      const DeviceWindow& window, Reach reach, const ReachedCells& cells,
                      SetCapacity capacity, const std::string& name) {
  FillList fill;
  MarkedSet reached(runner, cells.layout, capacity, name, fill);
  fill.run(runner);
  CoordinateSetRef target;
  target.layout = cells.layout;
  const KeyRelation keys =
      key_relation({.in = target, .out = from, .window = &window, .reach = reach});
  ReachArguments arguments{
      .relation = {.window = window.ref(keys, reach), .reach = reach, .keys = keys},
      .rows = from.rows,
      .keys = from.keys,
      .layout = from.layout,
      .reached = cells.layout,
      .box = make_box(cells.layout, cells.range.low.data(), cells.range.high.data()),
      .marked = reached.marked()};
  const bool by_parity = arguments.relation.window.of_parity != nullptr;
  const int lanes =
      by_parity ? arguments.relation.window.parity_lanes : lanes_of_row(window.volume());
  const std::int64_t rows_of_block = kReachThreads / lanes * kReachRowsPerLane;
  runner.run(maps_kernel(by_parity ? "mark_reached_by_parity" : "mark_reached"),
             {.blocks = (from.rows.capacity + rows_of_block - 1) / rows_of_block,
              .blocks_y = by_parity ? 1 : static_cast<int>((window.volume() + 31) / 32),
              .threads = kReachThreads},
             arguments);
  return reached.finish(runner, from.rows);
}

}   // namespace pumice::cuda
