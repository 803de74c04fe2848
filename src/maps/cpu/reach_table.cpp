// Working out what the cells of a block reach, axis by axis first.
#include "maps/cpu/reach_table.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace pumice {
namespace {

/// Where a local coordinate goes on one axis under one shift.
struct AxisTarget {
  bool exists = false;
  std::uint32_t step = 0;         // index of the neighbour's step
  std::uint32_t local_bits = 0;   // the axis' share of the Morton number in the neighbour
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
                         const std::vector<std::int64_t>& shifts, Reach reach, const KeyLayout& in,
                         const KeyLayout& out) {
  const std::int64_t extent = std::int64_t{1} << block_axis_bits(in.dimension, axis);
  AxisTargets targets;
  targets.of.resize(static_cast<std::size_t>(extent));
  std::vector<std::pair<AxisTarget*, std::int64_t>> step_of;
  for (auto& row : targets.of)
    row.resize(shifts.size());
  for (std::int64_t local = 0; local < extent; ++local) {
    for (std::size_t i = 0; i < shifts.size(); ++i) {
      // Cell numbers relative to where the block lands, so that they stay small.
      std::int64_t cell = local + phase * extent - out.bias[axis];
      if (reach == Reach::out_to_in) {
        cell = cell * stride + shifts[i];
      } else {
        if (floor_divide(cell - shifts[i], stride) * stride != cell - shifts[i]) continue;
        cell = (cell - shifts[i]) / stride;
      }
      cell += in.bias[axis];
      const std::int64_t step = floor_divide(cell, extent);
      AxisTarget& target = targets.of[static_cast<std::size_t>(local)][i];
      target.exists = true;
      target.local_bits = static_cast<std::uint32_t>(
          deposit_bits(static_cast<std::uint64_t>(cell - step * extent), local_mask(in, axis)));
      step_of.emplace_back(&target, step);
      targets.steps.push_back(step);
    }
  }
  std::sort(targets.steps.begin(), targets.steps.end());
  targets.steps.erase(std::unique(targets.steps.begin(), targets.steps.end()), targets.steps.end());
  for (auto& [target, step] : step_of) {
    const auto found = std::lower_bound(targets.steps.begin(), targets.steps.end(), step);
    target->step = static_cast<std::uint32_t>(found - targets.steps.begin());
  }
  return targets;
}

class TableMaker {
 public:
  TableMaker(const OffsetAxes& offsets, std::array<AxisTargets, kMaxDimension> targets,
             const KeyLayout& out, std::optional<std::size_t> left_out)
      : offsets_(offsets), targets_(std::move(targets)), out_(out), left_out_(left_out) {}

  ReachTable make() {
    for (int cell = 0; cell < kBlockCells; ++cell)
      gather(cell);
    table_.begin[kBlockCells] = static_cast<std::uint32_t>(table_.words.size());
    find_needs();
    number_steps();
    return std::move(table_);
  }

 private:
  /// A cell that the output cell at hand wants, through an offset.
  struct Wanted {
    std::uint32_t reach;
    std::uint32_t local;
    std::uint32_t offset;
  };

  void gather(int cell) {
    const auto first = static_cast<std::uint32_t>(table_.reaches.size());
    wanted_.clear();
    find_reaches(cell, first);
    table_.begin[static_cast<std::size_t>(cell)] = static_cast<std::uint32_t>(table_.words.size());
    fill_words(first);
    for (const Wanted& wanted : wanted_) {
      const ReachTable::Landing& reach = table_.reaches[wanted.reach];
      const std::uint64_t below = reach.wanted & ((std::uint64_t{1} << wanted.local) - 1);
      table_.wants[first_want_[wanted.reach - first] +
                   static_cast<std::size_t>(std::popcount(below))] = {
          wanted.offset, reach.neighbour * kBlockCells + wanted.local};
    }
  }

  /// One reach for each block that the cell's offsets lead to.
  void find_reaches(int cell, std::uint32_t first) {
    std::array<const AxisTarget*, kMaxDimension> row{};
    for (int axis = 0; axis < offsets_.dimension(); ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const std::uint64_t local =
          extract_bits(static_cast<std::uint64_t>(cell), local_mask(out_, axis));
      row[at] = targets_[at].of[static_cast<std::size_t>(local)].data();
    }
    for (std::size_t k = 0; k < offsets_.offsets(); ++k) {
      if (k == left_out_) continue;
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
      std::uint32_t& reach = reach_of_[neighbour];
      if (reach < first || reach == kNone) {   // the last one was of another cell
        reach = static_cast<std::uint32_t>(table_.reaches.size());
        table_.reaches.push_back({0, neighbour, 0});
      }
      table_.reaches[reach].wanted |= std::uint64_t{1} << local;
      wanted_.push_back({reach, local, static_cast<std::uint32_t>(k)});
    }
  }

  /// Packs the reaches from `first` on into words.
  void fill_words(std::uint32_t first) {
    first_want_.clear();
    int used = 64;
    for (std::uint32_t i = first; i < table_.reaches.size(); ++i) {
      const int cells = std::popcount(table_.reaches[i].wanted);
      if (used + cells > 64) {
        table_.words.push_back({i, i, static_cast<std::uint32_t>(table_.wants.size())});
        used = 0;
      }
      table_.reaches[i].shift = used;
      table_.words.back().end_reach = i + 1;
      first_want_.push_back(static_cast<std::uint32_t>(table_.wants.size()));
      table_.wants.resize(table_.wants.size() + static_cast<std::size_t>(cells));
      used += cells;
    }
  }

  void find_needs() {
    table_.need_words = (table_.neighbours.size() + 63) / 64;
    table_.needs.assign(kBlockCells * table_.need_words, 0);
    for (std::size_t cell = 0; cell < kBlockCells; ++cell) {
      for (std::uint32_t word = table_.begin[cell]; word < table_.begin[cell + 1]; ++word) {
        for (std::uint32_t i = table_.words[word].first_reach; i < table_.words[word].end_reach;
             ++i) {
          const std::uint32_t neighbour = table_.reaches[i].neighbour;
          table_.needs[cell * table_.need_words + neighbour / 64] |= std::uint64_t{1}
                                                                     << neighbour % 64;
        }
      }
    }
  }

  void number_steps() {
    std::uint32_t first = 0;
    for (std::size_t at = 0; at < static_cast<std::size_t>(offsets_.dimension()); ++at) {
      table_.steps[at] = std::move(targets_[at].steps);
      for (auto& neighbour : table_.neighbours)
        neighbour[at] += first;
      first += static_cast<std::uint32_t>(table_.steps[at].size());
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
      reach_of_.push_back(kNone);
    }
    return found->second;
  }

  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  const OffsetAxes& offsets_;
  std::array<AxisTargets, kMaxDimension> targets_;
  const KeyLayout& out_;
  std::optional<std::size_t> left_out_;
  ReachTable table_;
  std::vector<Wanted> wanted_;                                   // of the cell at hand
  std::vector<std::uint32_t> first_want_;                        // of its reaches
  std::unordered_map<std::uint64_t, std::uint32_t> number_of_;   // of steps packed into one number
  std::vector<std::uint32_t> reach_of_;                          // by neighbour: its latest one
};

}   // namespace

ReachTables::ReachTables(const OffsetAxes& offsets, Reach reach, const KernelWindow& window,
                         const KeyLayout& in, const KeyLayout& out,
                         std::optional<std::size_t> left_out)
    : reach_(reach) {
  const bool divides = reach == Reach::in_to_out;
  std::size_t phases = 1;
  for (std::size_t at = 0; at < static_cast<std::size_t>(in.dimension); ++at) {
    stride_[at] = window.stride[at];
    if (divides) phases *= static_cast<std::size_t>(stride_[at]);
  }
  for (std::size_t number = 0; number < phases; ++number) {
    std::array<AxisTargets, kMaxDimension> targets;
    auto left = static_cast<std::int64_t>(number);
    for (int axis = 0; axis < in.dimension; ++axis) {
      const auto at = static_cast<std::size_t>(axis);
      const std::int64_t phase = divides ? left % stride_[at] : 0;
      if (divides) left /= stride_[at];
      targets[at] = find_targets(axis, phase, stride_[at], offsets.shifts(axis), reach, in, out);
    }
    phases_.push_back(TableMaker(offsets, std::move(targets), out, left_out).make());
    const ReachTable& table = phases_.back();
    most_neighbours_ = std::max(most_neighbours_, table.neighbours.size());
    std::size_t steps = 0;
    for (const auto& of_axis : table.steps)
      steps += of_axis.size();
    most_steps_ = std::max(most_steps_, steps);
  }
}

}   // namespace pumice
