// Moves between sparse rows and dense arrays on the CPU. Arguments are checked by the caller.
#pragma once

#include <array>
#include <cstdint>

#include <pumice/ops/dense.hpp>

namespace pumice::cpu {

/// Where a site's channel 0 lies in a dense array: batch · batch_stride + Σ (coordinate - low) ·
/// stride; channel c is c · channel_stride further on. In elements.
struct DenseLayout {
  DenseGrid grid;
  std::int64_t batch_stride = 0;
  std::int64_t channel_stride = 0;
  std::array<std::int64_t, kMaxDimension> stride{};
};

/// Element of every row's channel 0, -1 for a row outside the grid; `first_outside` is the smallest
/// such row, or the number of rows.
struct DensePlaces {
  Buffer<std::int64_t> element;
  std::int64_t first_outside = 0;
};
DensePlaces places(const CoordinateSet& set, const DenseLayout& layout);

/// dense[place + c · channel_stride] = features[row, c], and the way back; rows without a place are
/// left out, or 0.
void place_rows(ConstTensorView features, const DensePlaces& places, std::int64_t channel_stride,
                TensorView dense);
void pick_rows(ConstTensorView dense, const DensePlaces& places, std::int64_t channel_stride,
               TensorView features);

/// Cells, numbered batch · volume + cell, where the mask (or, undefined, any channel) is not zero.
Buffer<std::int64_t> occupied_cells(ConstTensorView dense, ConstTensorView mask);

}   // namespace pumice::cpu
