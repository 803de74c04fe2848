// How a tile's sums begin and where they go: zero or a partial result, then a partial result or the
// epilogue and the storage type.
#pragma once

#include <cstddef>
#include <cstdint>

#include <pumice/core/tensor.hpp>

#include "kernels/cpu/micro_kernels.hpp"

namespace pumice::cpu {

class EpilogueRows {
 public:
  EpilogueRows() = default;
  /// Sums lie in `groups` parts of `group_pitch` elements, `channels / groups` of them used. Checks
  /// shapes and types; UserError names the one that does not fit. `partial` may be undefined.
  EpilogueRows(const MicroKernels& kernels, const Epilogue& epilogue, TensorView output,
               TensorView partial, const std::int32_t* out_order, std::int64_t channels,
               std::int64_t groups, std::int64_t group_pitch);

  /// Sets the sums of output ranks [first, first + rows).
  template <class T>
  void start(std::int64_t first, std::int64_t rows, T* sums, std::int64_t stride) const;
  /// Writes their rows.
  template <class T>
  void finish(std::int64_t first, std::int64_t rows, const T* sums, std::int64_t stride) const;

 private:
  std::int64_t row_of(std::int64_t rank) const {
    return out_order_ == nullptr ? rank : out_order_[rank];
  }

  const MicroKernels* kernels_ = nullptr;
  const std::byte* scale_ = nullptr;
  const std::byte* shift_ = nullptr;
  const std::byte* residual_ = nullptr;
  std::byte* output_ = nullptr;
  std::byte* partial_ = nullptr;
  const std::int32_t* out_order_ = nullptr;
  std::int64_t channels_ = 0;
  std::int64_t groups_ = 1;
  std::int64_t group_pitch_ = 0;
  std::int64_t storage_bytes_ = 0;
  Activation activation_ = Activation::none;
  double slope_ = 0;
};

}   // namespace pumice::cpu
