// Gather, dense product, scatter-add, offset by offset: the dataflow whose products a library
// makes.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/shared/pair_list_ref.h>

#include "kernels/cuda/matrix_products.hpp"
#include "kernels/cuda/pair_sums.hpp"

namespace pumice::cuda {

struct GatherGemmScatter {
  PairListRef pairs;
  std::span<const std::int64_t> offset_begin{};   // [offsets + 1], the same on the host
  MatrixShape shape{};
  const void* input = nullptr;    // [in rows, groups · in_channels]
  const void* weight = nullptr;   // [offsets, …] of `shape`
  SumTarget target{};
};

/// For offsets that together have no more pairs than the largest one alone: a launch that gathers
/// their rows, a product for each, and a launch for each that adds its rows to an f32 partial
/// result. An output row occurs once in an offset, so the bits are the same every time.
void gather_gemm_scatter(jit::KernelRunner& runner, MatrixProducts& products,
                         const GatherGemmScatter& convolution);

/// Of one offset whose rows meet themselves: the product and the epilogue.
void multiply_rows(jit::KernelRunner& runner, MatrixProducts& products, MatrixProduct product,
                   const SumTarget& target);

}   // namespace pumice::cuda
