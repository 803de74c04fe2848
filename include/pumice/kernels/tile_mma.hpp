// TileMMA, the skeleton of sparse convolution: for every tile of outputs, rows of the input times a
// slice of the weights, summed over the offsets in ascending order, then the epilogue.
#pragma once

#include <cstdint>
#include <string_view>

#include <pumice/core/tensor.hpp>
#include <pumice/formats/relation_tiles.hpp>
#include <pumice/kernels/epilogue.hpp>
#include <pumice/kernels/weight_gradient.hpp>
#include <pumice/kernels/weight_panels.hpp>

namespace pumice {

struct TileMmaArguments {
  ConstTensorView input;   // [N_in, C_in], storage type
  const WeightPanels* weight = nullptr;
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
