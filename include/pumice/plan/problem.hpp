// What a convolution is, without its data: all that a plan may depend on.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <pumice/shared/tile_spec.h>
#include <pumice/core/dtype.hpp>
#include <pumice/core/numerics.hpp>

namespace pumice {

enum class Direction : unsigned char { forward, input_gradient, weight_gradient };

std::string_view name_of(Direction direction);

/// Rows and channels are those of the direction: for an input gradient, `in` is the gradient of the
/// output; for a weight gradient, those of the forward pass.
struct ConvolutionProblem {
  Direction direction = Direction::forward;
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::int64_t pairs = 0;   // 0 where the host does not know them, as on a device
  std::int64_t offsets = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  DType dtype = DType::f32;
  Numerics numerics{};
  bool identity = false;   // one offset, and every row meets itself alone (1×1×1, the same sites)
  ActivationSet activations = ActivationSet::sloped;   // that the epilogue has to know
  // Inputs in tensors of their own. The last `second_channels` of the input's channels lie in a
  // second tensor; a shortcut is a further input that every output meets row by row.
  std::int64_t second_channels = 0;
  std::int64_t shortcut_channels = 0;
  std::int64_t shortcut_second_channels = 0;   // of shortcut_channels

  /// More tensors than one meet weights.
  bool has_more_inputs() const { return second_channels > 0 || shortcut_channels > 0; }
  /// Every channel meets itself alone, for which there are kernels of their own.
  bool is_depthwise() const {
    return groups > 1 && in_channels == groups && out_channels == groups;
  }

  /// Multiply-adds times two over the pairs that exist.
  double flop() const;
  /// Share of (output, offset) that are pairs: 1 for a dense grid without a border.
  double fullness() const;

  friend bool operator==(const ConvolutionProblem&, const ConvolutionProblem&) = default;
};

/// All fields but the numbers of rows and pairs, in words that stay the same from version to
/// version: "forward f16 96>128 offsets 27 …". What measured plans are kept under, beside buckets
/// of those numbers.
std::string to_text(const ConvolutionProblem& problem);
/// The inverse, with no rows and pairs. UserError where the text is no problem.
ConvolutionProblem parse_problem(std::string_view text);

}   // namespace pumice
