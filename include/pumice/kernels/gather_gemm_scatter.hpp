// The oldest dataflow of sparse convolution: copy the input rows of an offset's pairs together,
// multiply them with the offset's weights by a dense library, add the products to their outputs.
#pragma once

#include <cstdint>
#include <span>

#include <pumice/core/tensor.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/epilogue.hpp>

namespace pumice {

/// out[i] = input[rows[i]], widened to the compute type; -1 gives a row of zeros. out: compute type
/// [rows.size(), C].
void gather_rows(ConstTensorView input, std::span<const std::int32_t> rows, TensorView out);

/// sums[rows[i]] += product[i]; both of one compute type; rows of -1 are left out. A row may
/// repeat: additions happen in order of i.
void scatter_add_rows(ConstTensorView product, std::span<const std::int32_t> rows, TensorView sums);

struct GatherGemmScatterArguments {
  ConstTensorView input;    // [N_in, C_in], storage type
  ConstTensorView weight;   // [K, C_in / groups, C_out], storage type, not packed
  std::int64_t groups = 1;
  bool transpose_weight = false;   // multiply with Wᵀ: the input gradient
  RelationTilesView tiles;         // tiles cut the outputs between threads
  Epilogue epilogue{};
  TensorView output;   // [N_out, C_out], storage type; every row is written
};

/// The same result as tile_mma, up to rounding: products are summed offset by offset in ascending
/// order in the compute type. Bits do not depend on the number of threads.
void gather_gemm_scatter(const GatherGemmScatterArguments& arguments);

}   // namespace pumice
