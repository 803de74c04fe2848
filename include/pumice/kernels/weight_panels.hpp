// Weights in the form in which TileMMA reads them on the CPU.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pumice/core/buffer.hpp>
#include <pumice/core/tensor.hpp>

namespace pumice {

/// Weights in the order the kernel reads them: for each group and offset, panels of `panel` output
/// channels, input channel by input channel, in the compute type (or bf16 pairs where the processor
/// multiplies those).
class WeightPanels {
 public:
  WeightPanels() = default;
  /// weight: [K, C_in / groups, C_out]. `transpose` packs Wᵀ, which the input gradient needs.
  WeightPanels(ConstTensorView weight, std::int64_t groups, bool transpose);

  bool defined() const { return defined_; }
  /// Whether it is what these arguments would make, as far as shapes and types tell.
  bool is_of(const ConstTensorView& weight, std::int64_t groups, bool transpose) const;
  std::int64_t offsets() const { return offsets_; }
  std::int64_t in_channels() const { return in_channels_; }   // of the product, all groups
  std::int64_t out_channels() const { return out_channels_; }
  std::int64_t groups() const { return groups_; }
  DType dtype() const { return dtype_; }   // storage type it was made from
  std::int64_t panel() const { return panel_; }
  /// Every channel meets itself alone: stored as [K, C], not in panels.
  bool depthwise() const { return depthwise_; }
  /// Held as pairs of bf16, [in_channels / groups / 2, panel, 2] a panel.
  bool bf16_pairs() const { return bf16_pairs_; }
  /// Elements of one offset of one group.
  std::int64_t slice() const { return slice_; }
  const std::byte* data() const { return data_.data(); }
  std::size_t bytes() const { return data_.bytes(); }

 private:
  Buffer<std::byte> data_;
  std::int64_t offsets_ = 0;
  std::int64_t in_channels_ = 0;
  std::int64_t out_channels_ = 0;
  std::int64_t groups_ = 1;
  std::int64_t panel_ = 0;
  std::int64_t slice_ = 0;
  DType dtype_ = DType::f32;
  bool defined_ = false;
  bool depthwise_ = false;
  bool bf16_pairs_ = false;
};

}   // namespace pumice
