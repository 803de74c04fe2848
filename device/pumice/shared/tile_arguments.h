// What one launch of a TileMMA kernel passes.
#pragma once

#include <pumice/shared/activation.h>
#include <pumice/shared/tile_map.h>

namespace pumice {

/// y = activation(sum · scale + shift + residual). A null pointer stands for its neutral value;
/// pointers of parts that the kernel was not compiled with are ignored.
struct EpilogueArguments {
  const float* scale = nullptr;     // [groups · out_channels]
  const float* shift = nullptr;     // [groups · out_channels]
  const void* residual = nullptr;   // [out_rows, groups · out_channels], of the output's type
  float slope = 0;                  // of leaky_relu
  Activation activation = Activation::none;
};

/// Rows are dense and start at 16-byte aligned addresses.
struct TileArguments {
  TileMapRef map;                   // identity gather: only out_rows and the number of offsets, 1
  const void* input = nullptr;      // [in_rows, groups · first_channels]
  const void* second = nullptr;     // [in_rows, in_channels − first_channels], with two sources
  const void* weight = nullptr;     // packed for the spec
  const void* shortcut = nullptr;   // [out_rows, shortcut_first_channels]
  const void* shortcut_second = nullptr;   // [out_rows, the rest]
  const void* shortcut_weight = nullptr;   // packed for the spec
  void* output = nullptr;   // [out_rows, groups · out_channels]; Write::add: float, Write::slots:
                            // float [splits, out_rows' capacity, groups · out_channels]
  EpilogueArguments epilogue{};
  /// The kernel before this one, which may still run, writes only features: the map and packed
  /// weights may be read before it has ended.
  bool reads_ahead = false;
};

/// Adds the partial results of splits and finishes them: y = epilogue(Σ partial[slot]).
struct FinishArguments {
  float* partial = nullptr;   // [slots, out_rows' capacity, channels]
  void* output = nullptr;     // [out_rows, channels]
  RowCountRef tiles;          // of the map that the partial results were made with
  RowCountRef out_rows;
  int32_t channels = 0;   // of all groups
  int32_t slots = 1;
  bool clear = false;   // leaves zeros behind, for the next use of Write::add
  EpilogueArguments epilogue{};
};

/// Adds the products of the pairs of each output row and finishes them: y = epilogue(Σ product).
struct FinishPairsArguments {
  const float* product = nullptr;     // [pairs, channels]
  const int32_t* pair_of = nullptr;   // [out_rows, offsets] a row of `product`, or -1
  void* output = nullptr;             // [out_rows, channels]
  RowCountRef tiles;                  // of pairs that the products were made with
  RowCountRef out_rows;
  int32_t channels = 0;   // of all groups
  int32_t offsets = 0;
  EpilogueArguments epilogue{};
};

}   // namespace pumice
