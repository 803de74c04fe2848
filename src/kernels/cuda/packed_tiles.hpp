// Weights packed for tile kernels, one buffer for each layout that was asked for.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <pumice/shared/pack_weight.h>
#include <pumice/core/tensor.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// How a weight is to be read. Scales are known by their address.
struct PackOrder {
  bool transpose = false;   // of [K, out_channels, in_channels]: gradients, and PyTorch's linear
  bool mirror = false;      // offsets from the last to the first
  const float* scale = nullptr;   // of each output channel, multiplied in; null: 1
  friend bool operator==(const PackOrder&, const PackOrder&) = default;
};

/// The source of the kernel that packs; stays as long as the process lives.
const jit::Source& packing_source();

/// In which layout a weight was asked for, and read how.
struct PackUse {
  WeightLayout layout;
  PackOrder order;
};

class PackedTiles {
 public:
  /// `weight` packed in `layout`; enqueued when it is not there yet. Valid until `clear`.
  const void* get(jit::KernelRunner& runner, const WeightLayout& layout,
                  const ConstTensorView& weight, PackOrder order);
  void clear() { entries_.clear(); }

  /// Room for what it will be asked for, which the caller has to fill with `launch_packing` before.
  /// Nothing where it is there already, or where a weight of this shape has no such layout.
  std::optional<PackWeightArguments> make_room(jit::KernelRunner& runner, const PackUse& use,
                                               const ConstTensorView& weight);

 private:
  struct Entry {
    PackUse use;
    Buffer<std::byte> data;
    std::uint64_t recording;   // whose graph packs it, for itself alone; 0: none
  };
  const Entry* find(const PackUse& use, StreamView stream) const;
  PackWeightArguments add(jit::KernelRunner& runner, const PackUse& use,
                          const ConstTensorView& weight);

  std::vector<Entry> entries_;   // one or two
};

/// Packs many weights, `kMostPackedWeights` a launch.
void launch_packing(jit::KernelRunner& runner, std::span<const PackWeightArguments> weights);

}   // namespace pumice::cuda
