// Dense products on a device, by a library.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/shared/tile_spec.h>
#include <pumice/core/device.hpp>

#include "jit/kernel_runner.hpp"

namespace pumice::cuda {

/// What products with one matrix have in common.
struct MatrixShape {
  std::int32_t in_channels = 0;   // of a group
  std::int32_t out_channels = 0;
  std::int32_t groups = 1;
  ElementType operand = ElementType::f16;   // tf32: stored as f32
  /// The matrix is [out_channels, groups · in_channels], not [in_channels, groups · out_channels].
  bool transpose_weight = false;
};

/// output = input · weight, group by group, for dense rows of all groups' channels. Sums are f32.
struct MatrixProduct {
  std::int64_t rows = 0;
  MatrixShape shape{};
  const void* input = nullptr;    // [rows, groups · in_channels]
  const void* weight = nullptr;   // see MatrixShape
  float* output = nullptr;        // [rows, groups · out_channels]
};

class MatrixProducts {
 public:
  MatrixProducts() = default;
  virtual ~MatrixProducts() = default;
  MatrixProducts(const MatrixProducts&) = delete;
  MatrixProducts& operator=(const MatrixProducts&) = delete;

  /// Enqueues them on the stream of `runner`, which gives the workspace. The same bits every time.
  virtual void multiply(jit::KernelRunner& runner, std::span<const MatrixProduct> products) = 0;
};

/// cuBLAS on `device`; UserError with the reason where it cannot be had.
MatrixProducts& cublas_products(Device device);

}   // namespace pumice::cuda
