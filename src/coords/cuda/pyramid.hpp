// A set and those of its cells of 2, 4, 8 … a side, made of the same keys.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "coords/cuda/level_launches.hpp"

namespace pumice::cuda {

class Pyramid {
 public:
  /// `layout` is that of the keys, of which there are up to `elements`; the first set is halved
  /// `first_halving` times.
  Pyramid(jit::KernelRunner& runner, KeyLayout layout, std::int64_t elements, int first_halving,
          std::span<const SetCapacity> capacities, bool has_order, const std::string& name,
          FillList& fill);

  DeviceSet& base() { return sets_.front(); }
  void make(jit::KernelRunner& runner, const SortedElements& elements);
  std::vector<DeviceSet> take() { return std::move(sets_); }

 private:
  LevelSums sums_;
  std::vector<DeviceSet> sets_;
  std::vector<int> shifts_;
};

}   // namespace pumice::cuda
