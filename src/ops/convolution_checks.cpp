// The sentences.
#include "ops/convolution_checks.hpp"

#include <pumice/core/error.hpp>

#include "ops/checks.hpp"

namespace pumice {
namespace {

using checks::compute_dtype;

void check_channel_vector(const char* name, ConstTensorView values, std::int64_t channels,
                          DType dtype) {
  if (!values.defined()) return;
  PUMICE_EXPECTS(values.rank() == 1 && values.extent(0) == channels, name, " has shape ",
                 to_string(values.shape()), ": give one value for each of the ", channels,
                 " output channels");
  PUMICE_EXPECTS(values.dtype() == dtype, name, " is ", name_of(values.dtype()),
                 ": it is applied where the sum is computed, so convert it to ", name_of(dtype));
}

}   // namespace

void check_features(const char* name, ConstTensorView features, const ExpectedRows& expected) {
  PUMICE_EXPECTS(features.rank() == 2, name, " has shape ", to_string(features.shape()),
                 ": give a matrix with one row per site and one column per channel");
  PUMICE_EXPECTS(is_floating(features.dtype()), name, " is ", name_of(features.dtype()),
                 ": convert it to f64, f32, f16 or bf16");
  PUMICE_EXPECTS(features.rows() == expected.rows, name, " has ", features.rows(), " rows, but ",
                 expected.name, " = ", expected.rows,
                 ": give the features of the coordinates the map was built for");
  PUMICE_EXPECTS(features.extent(1) > 0, name, " has no channels: give at least one");
}

void check_groups(const char* name, std::int64_t channels, std::int64_t groups) {
  PUMICE_EXPECTS(groups >= 1, "groups = ", groups, ": give at least 1");
  PUMICE_EXPECTS(channels % groups == 0, "groups = ", groups, " does not divide the ", channels,
                 " channels of ", name, ": choose a divisor");
}

void check_weight(ConstTensorView weight, const KernelMapView& map, std::int64_t groups,
                  const ExpectedType& expected) {
  PUMICE_EXPECTS(weight.rank() == 3, "weight has shape ", to_string(weight.shape()),
                 ": give [offsets, input channels / groups, output channels]");
  PUMICE_EXPECTS(weight.dtype() == expected.dtype, "weight is ", name_of(weight.dtype()), " but ",
                 expected.name, ' ', name_of(expected.dtype), ": convert one of them");
  PUMICE_EXPECTS(weight.extent(0) == map.offsets, "weight has ", weight.extent(0),
                 " offsets but the kernel map has ", map.offsets,
                 ": give weights made for the map's window");
  PUMICE_EXPECTS(weight.extent(1) > 0 && weight.extent(2) > 0, "weight has shape ",
                 to_string(weight.shape()), ": give at least one channel on either side");
  check_groups("weight", weight.extent(2), groups);
}

void check_epilogue(const Epilogue& epilogue, std::int64_t rows, std::int64_t channels,
                    DType feature_dtype) {
  const DType compute = compute_dtype(feature_dtype);
  check_channel_vector("epilogue.scale", epilogue.scale, channels, compute);
  check_channel_vector("the bias (epilogue.shift)", epilogue.shift, channels, compute);
  const ConstTensorView residual = epilogue.residual;
  if (!residual.defined()) return;
  PUMICE_EXPECTS(residual.shape() == Shape({rows, channels}), "epilogue.residual has shape ",
                 to_string(residual.shape()), ": it is added to an output of ",
                 to_string(Shape({rows, channels})), ", so give it that shape");
  PUMICE_EXPECTS(residual.dtype() == feature_dtype, "epilogue.residual is ",
                 name_of(residual.dtype()), " but the features are ", name_of(feature_dtype),
                 ": convert one of them");
}

void check_more_inputs(const ConvolutionOptions& options, ConstTensorView features,
                       std::int64_t out_rows, std::int64_t out_channels, DType shortcut_weight) {
  const auto check_beside = [&](const char* name, ConstTensorView tensor, const char* rows_of,
                                std::int64_t rows) {
    if (!tensor.defined()) return;
    check_features(name, tensor, {rows_of, rows});
    checks::same_dtype(tensor, features.dtype(), "convolution", name, "features");
    checks::same_device(tensor, features, "convolution", name, "features");
  };
  check_beside("second", options.second, "features.rows", features.rows());
  const Shortcut& shortcut = options.shortcut;
  if (!shortcut.features.defined()) {
    PUMICE_EXPECTS(!shortcut.second.defined() && !shortcut.weight.defined(), "shortcut has ",
                   shortcut.weight.defined() ? "a weight" : "a second tensor",
                   " but no features: give them, or leave the shortcut out");
    return;
  }
  check_beside("shortcut.features", shortcut.features, "map.out_rows", out_rows);
  check_beside("shortcut.second", shortcut.second, "map.out_rows", out_rows);
  const std::int64_t channels =
      shortcut.features.extent(1) + (shortcut.second.defined() ? shortcut.second.extent(1) : 0);
  PUMICE_EXPECTS(
      shortcut.weight.defined() && shortcut.weight.shape() == Shape({1, channels, out_channels}),
      "shortcut.weight has shape ", to_string(shortcut.weight.shape()), ": it takes ", channels,
      " channels to the ", out_channels, " of the output, so give [1, ", channels, ", ",
      out_channels, "]");
  checks::same_dtype(shortcut.weight, shortcut_weight, "convolution", "shortcut.weight",
                     "features");
  checks::same_device(shortcut.weight, features, "convolution", "shortcut.weight", "features");
  check_channel_vector("shortcut.scale", shortcut.scale, out_channels,
                       compute_dtype(features.dtype()));
  checks::same_device(shortcut.scale, features, "convolution", "shortcut.scale", "features");
}

void check_bare(const ConvolutionOptions& options, bool adds_residual) {
  const Epilogue& epilogue = options.epilogue;
  PUMICE_EXPECTS(!options.second.defined() && !options.shortcut.features.defined(),
                 "a second tensor or a shortcut is set for a gradient: take the gradients of each "
                 "input apart");
  PUMICE_EXPECTS(!epilogue.scale.defined() && !epilogue.shift.defined() &&
                     (adds_residual || !epilogue.residual.defined()) &&
                     epilogue.activation == Activation::none,
                 "epilogue is set for a gradient: take the activation's gradient first and leave "
                 "the epilogue empty",
                 adds_residual ? " but for a residual" : "");
}

}   // namespace pumice
