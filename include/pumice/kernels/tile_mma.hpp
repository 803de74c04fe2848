// TileMMA, the skeleton of sparse convolution: for every tile of outputs, rows of the input times a
// slice of the weights, summed over the offsets in ascending order, then the epilogue.
#pragma once

#include <cstdint>
#include <string_view>

#include <pumice/core/tensor.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/epilogue.hpp>
#include <pumice/kernels/weight_gradient.hpp>

namespace pumice {

/// Weights in the order the kernel reads them: for each group and offset, panels of `panel` output
/// channels, input channel by input channel, in the compute type (or bf16 pairs where the processor
/// multiplies those). Made once and kept when weights do not change.
class PackedWeight {
 public:
  PackedWeight() = default;
  /// weight: [K, C_in / groups, C_out]. `transpose` packs Wᵀ, which the input gradient needs.
  PackedWeight(ConstTensorView weight, std::int64_t groups, bool transpose);

  bool defined() const { return defined_; }
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

struct TileMmaArguments {
  ConstTensorView input;   // [N_in, C_in], storage type
  const PackedWeight* weight = nullptr;
  RelationTilesView tiles;
  Epilogue epilogue{};
  TensorView output;      // [N_out, C_out], storage type; every row is written
  TensorView partial{};   // compute type [N_out, C_out]: added to and written instead of
                          // `output`, without epilogue (splits); undefined: none
};

/// Runs on all threads; the bits of the result depend neither on their number nor on tile_rows. A
/// pair whose input row is -1 is skipped: it adds nothing, whatever the weights.
void tile_mma(const TileMmaArguments& arguments);

/// The instruction set the kernels run with here ("AVX2", "AVX3", "NEON"), and whether it
/// multiplies bf16 directly.
std::string_view kernel_target();
bool multiplies_bf16();

}   // namespace pumice
