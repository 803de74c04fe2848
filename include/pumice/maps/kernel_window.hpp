// The shape of a kernel: which offsets it has and how they relate inputs to outputs.
//
//     in = out · stride − padding + offset · dilation            (on every axis)
//
// Offset k of a hypercube kernel is its k-th cell in lexicographic order, last axis fastest, each
// component from 0; weights are [K, C_in, C_out] in that order (cross-correlation, no flip).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <pumice/coords/coordinate_set.hpp>

namespace pumice {

enum class KernelShape : unsigned char { hypercube, hypercross, custom };

struct KernelWindow {
  int dimension = 3;
  KernelShape shape = KernelShape::hypercube;
  Axes size{3, 3, 3, 1};   // extent per axis (hypercube, hypercross: odd for the latter)
  Axes stride{1, 1, 1, 1};
  Axes padding{0, 0, 0, 0};
  Axes dilation{1, 1, 1, 1};
  Axes output_padding{0, 0, 0,
                      0};   // cells behind the last that a transposed grid has by its window
  std::vector<Axes> custom_offsets{};   // for KernelShape::custom, in weight order

  friend bool operator==(const KernelWindow&, const KernelWindow&) = default;

  /// The offsets in weight order. A hypercross lists the cells of the hypercube that lie on an axis
  /// through its centre, in the hypercube's order.
  std::vector<Axes> offsets() const;
  /// Number of offsets, K.
  std::int64_t volume() const;
  /// Whether the window maps every site to itself through some offset, and offset k to the mirror
  /// of offset K-1-k: stride 1 and centred. Its map is its own transpose with offsets reversed.
  bool symmetric() const;
};

/// A stride-1 window centred on its output: padding = (size - 1) / 2 · dilation on odd axes. Even
/// axes are not centred (offsets 0 … size-1), as in MinkowskiEngine and TorchSparse.
KernelWindow submanifold_window(int dimension, const Axes& size, const Axes& dilation);

/// Throws UserError, naming the argument, for sizes or strides or dilations below 1, negative
/// output_padding, more than 2^20 offsets, duplicates among custom offsets.
void validate(const KernelWindow& window);

/// Grid extents after a strided convolution: (in + 2·padding − dilation·(size − 1) − 1) / stride
/// + 1.
Axes strided_shape(const Axes& shape, const KernelWindow& window);
/// Grid extents after a transposed one: (in − 1)·stride − 2·padding + dilation·(size − 1) + 1 +
/// output_padding.
Axes transposed_shape(const Axes& shape, const KernelWindow& window);

std::string to_string(const KernelWindow& window);

}   // namespace pumice
