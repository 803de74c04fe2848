// Weights packed for tile kernels, one buffer for each layout that was asked for.
#pragma once

#include <memory>
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

class PackedTiles {
 public:
  /// `weight` packed in `layout`; enqueued when it is not there yet. Valid until `clear`.
  const void* get(jit::KernelRunner& runner, const WeightLayout& layout,
                  const ConstTensorView& weight, PackOrder order);
  void clear() { entries_.clear(); }

 private:
  struct Entry {
    WeightLayout layout;
    PackOrder order;
    Buffer<std::byte> data;
  };
  std::vector<Entry> entries_;   // one or two
};

}   // namespace pumice::cuda
