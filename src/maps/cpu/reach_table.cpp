// Working out what the cells of a block reach, axis by axis first.
#include "maps/cpu/reach_table.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace pumice {
namespace {

using BlockVector = std::array<std::int64_t, kMaxDimension>;

/// Where a local coordinate goes on one axis under one shift.
struct AxisTarget {
  bool exists = false;
  std::uint32_t step = 0;        // index of the neighbour's step
  std::uint32_t local_bits = 0;  // the axis' share of the Morton number in the neighbour
};

/// Targets of one axis by [local coordinate][shift], and the steps they take.
struct AxisTargets {
  std::vector<std::vector<AxisTarget>> of;
  std::vector<std::int64_t> steps;
};

/// Key bits of the local cell that belong to an axis; the same in every layout.
std::uint64_t local_mask(const KeyLayout& layout, int axis) {
  return layout.mask[axis] & (kBlockCells - 1);
}

AxisTargets find_targets(int axis, std::int64_t phase, std::int64_t stride,
                         const std::vector<std::int64_t>& shifts, Direction direction,
                         const KeyLayout& in, const KeyLayout& out) {
  const std::int64_t extent = std::int64_t{1} << block_axis_bits(in.dimension, axis);
  AxisTargets targets;
  targets.of.resize(static_cast<std::size_t>(extent));
  std::vector<std::pair<AxisTarget*, std::int64_t>> step_of;
  for (auto& row : targets.of) row.resize(shifts.size());
  for (std::int64_t local = 0; local < extent; ++local) {
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      // Cell numbers relative to where the block lands, so that they stay small.
      std::int64_t cell = local + phase * extent - out.bias[axis];
      if (direction == Direction::out_to_in) {
        cell = cell * stride + shifts[i];
      } else {
        if (floor_divide(cell - shifts[i], stride) * stride != cell - shifts[i]) continue;
        cell = (cell - shifts[i]) / stride;
      }
      cell += in.bias[axis];
      const std::int64_t step = floor_divide(cell, extent);
      AxisTarget& target = targets.of[static_cast<std::size_t>(local)][i];
      target.exists = true;
      target.local_bits = static_cast<std::uint32_t>(deposit_bits(
          static_cast<std::uint64_t>(cell - step * extent), local_mask(in, axis)));
      step_of.emplace_back(&target, step);
      targets.steps.push_back(step);
    }
  }
  std::sort(targets.steps.begin(), targets.steps.end());
  targets.steps.erase(std::unique(targets.steps.begin(), targets.steps.end()),
                      targets.steps.end());
  for (auto& [target, step] : step_of) {
    const auto found = std::lower_bound(targets.steps.begin(), targets.steps.end(), step);
    target->step = static_cast<std::uint32_t>(found - targets.steps.begin());
  }
  return targets;
}

class TableMaker {
 public:
  TableMaker(const OffsetAxes& offsets, std::array<AxisTargets, kMaxDimension> targets,
             const KeyLayout& out)
      : offsets_(offsets), targets_(std::move(targets)), out_(out) {}

  ReachTable make() {
    for (int cell = 0; cell < kBlockCells; ++cell) gather(cell);
    table_.begin[kBlockCells] = static_cast<std::uint32_t>(table_.reach.size());
    std::uint32_t first = 0;
    for (ReachTable::Reach& reach : table_.reach) {
      reach.first = first;
      first += static_cast<std::uint32_t>(std::popcount(reach.wanted));
    }
    table_.offset.resize(first);
    for (const Wanted& wanted : wanted_) {
      const ReachTable::Reach& reach = table_.reach[wanted.reach];
      const std::uint64_t below = reach.wanted & ((std::uint64_t{1} << wanted.local) - 1);
      table_.offset[reach.first + static_cast<std::uint32_t>(std::popcount(below))] = wanted.offset;
    }
    for (std::size_t at = 0; at < targets_.size(); ++at) {
      table_.steps[at] = std::move(targets_[at].steps);
    }
    return std::move(table_);
  }

 private:
  struct Wanted {
    std::uint32_t reach;
    std::uint32_t local;
    std::uint32_t offset;
  };

  void gather(int cell) {
    std::array<const AxisTarget*, kMaxDimension> row{};
    for (int axis = 0; axis < offsets_.dimension(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const std::uint64_t local =
          extract_bits(static_cast<std::uint64_t>(cell), local_mask(out_, axis));
      row[at] = targets_[at].of[static_cast<std::size_t>(local)].data();
    }
    const auto begin = static_cast<std::uint32_t>(table_.reach.size());
    table_.begin[static_cast<std::size_t>(cell)] = begin;
    for (std::size_t k = 0; k < offsets_.offsets(); ++k) {
      std::array<std::uint32_t, kMaxDimension> steps{};
      std::uint32_t local = 0;
      bool exists = true;
      for (int axis = 0; axis < offsets_.dimension(); ++axis) {
        const auto at = static_cast<std::size_t>(axis);
        const AxisTarget& target = row[at][offsets_.shift_index(k, axis)];
        exists = exists && target.exists;
        steps[at] = target.step;
        local |= target.local_bits;
      }
      if (!exists) continue;
      const std::uint32_t neighbour = number_of(steps);
      // A neighbour's entry is of this cell if it was made since the cell's first one.
      std::uint32_t& entry = entry_of_[neighbour];
      if (entry < begin || entry >= table_.reach.size() ||
          table_.reach[entry].neighbour != neighbour) {
        entry = static_cast<std::uint32_t>(table_.reach.size());
        table_.reach.push_back({0, neighbour, 0});
      }
      table_.reach[entry].wanted |= std::uint64_t{1} << local;
      wanted_.push_back({entry, local, static_cast<std::uint32_t>(k)});
    }
  }

  std::uint32_t number_of(const std::array<std::uint32_t, kMaxDimension>& steps) {
    std::uint64_t packed = 0;
    for (int axis = 0; axis < offsets_.dimension(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      packed = packed * targets_[at].steps.size() + steps[at];
    }
    const auto [found, is_new] =
        number_of_.emplace(packed, static_cast<std::uint32_t>(table_.neighbours.size()));
    if (is_new) {
      table_.neighbours.push_back(steps);
      entry_of_.push_back(0);
    }
    return found->second;
  }

  const OffsetAxes& offsets_;
  std::array<AxisTargets, kMaxDimension> targets_;
  const KeyLayout& out_;
  ReachTable table_;
  std::vector<Wanted> wanted_;
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_;   // of steps packed into one number
  std::vector<std::uint32_t> entry_of_;                          // by neighbour
};

}  // namespace

ReachTables::ReachTables(const OffsetAxes& offsets, Direction direction,
                         const KernelWindow& window, const KeyLayout& in, const KeyLayout& out)
    : direction_(direction), dimension_(in.dimension) {
  std::size_t phases = 1;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension_); ++at) {
    stride_[at] = window.stride[at];
    if (direction == Direction::in_to_out) phases *= static_cast<std::size_t>(stride_[at]);
  }
  for (std::size_t number = 0; number < phases; ++number) {
    std::array<AxisTargets, kMaxDimension> targets;
    std::size_t left = number;
    for (int axis = 0; axis < dimension_; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const auto stride = static_cast<std::size_t>(stride_[at]);
      const bool divides = direction == Direction::in_to_out;
      const auto phase = static_cast<std::int64_t>(divides ? left % stride : 0);
      if (divides) left /= stride;
      targets[at] =
          find_targets(axis, phase, stride_[at], offsets.shifts(axis), direction, in, out);
    }
    phases_.push_back(TableMaker(offsets, std::move(targets), out).make());
    most_neighbours_ = std::max(most_neighbours_, phases_.back().neighbours.size());
  }
}

const ReachTable& ReachTables::of(const BlockVector& block, BlockVector& landing) const {
  std::size_t phase = 0;
  std::size_t phases = 1;
  for (std::size_t at = 0; at < static_cast<std::size_t>(dimension_); ++at) {
    if (direction_ == Direction::out_to_in) {
      landing[at] = block[at] * stride_[at];
    } else {
      landing[at] = block[at] / stride_[at];   // block coordinates are never negative
      phase += phases * static_cast<std::size_t>(block[at] % stride_[at]);
      phases *= static_cast<std::size_t>(stride_[at]);
    }
  }
  return phases_[phase];
}

}  // namespace pumice
