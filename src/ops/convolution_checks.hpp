// What a caller of a convolution can get wrong, said in sentences.
#pragma once

#include <pumice/ops/convolution.hpp>

namespace pumice {

/// `rows`: "map.in_rows" or "map.out_rows" with its value; `name` is the argument's.
struct ExpectedRows {
  const char* name;
  std::int64_t rows;
};

/// The type of the tensor that meets the weight; `name` is "the features are", "grad_output is".
struct ExpectedType {
  const char* name;
  DType dtype;
};

/// A feature matrix of the right type and number of rows.
void check_features(const char* name, ConstTensorView features, const ExpectedRows& expected);
/// [K, C_in / groups, C_out] for the map and groups, of the type of what meets it.
void check_weight(ConstTensorView weight, const KernelMapView& map, std::int64_t groups,
                  const ExpectedType& expected);
/// `channels` of `name` divide into groups.
void check_groups(const char* name, std::int64_t channels, std::int64_t groups);
/// Scale and shift of [channels], residual of [rows, channels].
void check_epilogue(const Epilogue& epilogue, std::int64_t rows, std::int64_t channels,
                    DType feature_dtype);
/// `second` lies beside the features; a shortcut has the rows and channels of the output, and a
/// weight of type `shortcut_weight`.
void check_more_inputs(const ConvolutionOptions& options, ConstTensorView features,
                       std::int64_t out_rows, std::int64_t out_channels, DType shortcut_weight);
/// Gradients are taken of one input's sum before any epilogue; some add a residual.
void check_bare(const ConvolutionOptions& options, bool adds_residual = false);

}   // namespace pumice
