// The kernels that networks ask for on a device, known before one of them runs: what
// `pumice kernels` lists, checks and compiles ahead. They are asked of the code that launches them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <pumice/shared/tile_spec.h>
#include <pumice/core/dtype.hpp>
#include <pumice/nn/module.hpp>
#include <pumice/plan/store.hpp>

#include "kernels/cuda/planned_kernel.hpp"

namespace pumice::nn {

/// What decides which kernels a layer needs.
struct LayerShape {
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  std::int64_t offsets = 1;
  bool has_map = true;      // false: rows meet themselves
  bool is_linear = false;   // its weights are [C_out, C_in]
  // Inputs in tensors of their own, as in ConvolutionProblem; then it is for forward passes alone.
  std::int64_t second_channels = 0;
  std::int64_t shortcut_channels = 0;
  std::int64_t shortcut_second_channels = 0;

  bool has_more_inputs() const { return second_channels > 0 || shortcut_channels > 0; }
  friend bool operator==(const LayerShape&, const LayerShape&) = default;
};

/// Kernels by their sources, each once, in the order they were added.
class DeviceKernels {
 public:
  /// `architecture`: a bit of tile_limits.h.
  explicit DeviceKernels(std::uint32_t architecture) : architecture_(architecture) {}

  /// Sets, maps, operators, and what goes with products of any channels.
  void add_shared();
  /// Forward pass and training step of a network's layers, multiplied in these types, for any
  /// number of rows.
  void add(const Module& network, std::span<const ElementType> types);
  /// Of the networks that an installation carries kernels for: MinkUNet42 in both tables of widths
  /// and at half the first, CenterPoint and SECOND, for 4 and 5 channels of input.
  void add_common(std::span<const ElementType> types);
  /// The same of a convolution with a kernel of 3×3×3, with one of 2×2×2 and stride 2, of its
  /// inverse, of one of 1×1×1, and of a linear layer.
  void add(std::int64_t in_channels, std::int64_t out_channels, std::span<const ElementType> types);
  /// What measured plans ask for, as far as they are of this architecture. UserError where a text
  /// in them is no problem or no plan.
  void add(const std::vector<tune::StoredPlan>& plans);
  /// All specifications of the tables, also those that are not picked unmeasured.
  void add_tables();

  const std::vector<cuda::PlannedKernel>& all() const { return kernels_; }

 private:
  void add(const LayerShape& layer, std::span<const ElementType> types);
  void add(const cuda::PlannedKernel& kernel);

  std::uint32_t architecture_;
  std::vector<cuda::PlannedKernel> kernels_;
};

/// The types that networks are multiplied in on a device. tf32 is how f32 is multiplied where a
/// context, or PyTorch's `set_float32_matmul_precision`, allows it.
std::span<const ElementType> product_types();
/// What tensors of a product type are stored as: f32 for tf32.
DType stored_as(ElementType type);

}   // namespace pumice::nn
