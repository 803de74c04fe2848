// From what a convolution is to how it is run, and why.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <pumice/core/dtype.hpp>

namespace pumice {

enum class Direction : unsigned char { forward, input_gradient, weight_gradient };
/// The first three are ways to run a forward pass or an input gradient, for a caller to choose
/// from; the last is how every weight gradient is made.
enum class Dataflow : unsigned char {
  gather_gemm_scatter,
  fetch_on_demand,
  implicit_gemm,
  sum_over_pairs,
};

std::string_view name_of(Direction direction);
std::string_view name_of(Dataflow dataflow);
/// "gather_gemm_scatter", "fetch_on_demand", "implicit_gemm"; UserError for others.
Dataflow parse_dataflow(std::string_view name);

/// A convolution without its data. Rows and channels are those of the direction: for an input
/// gradient, `in` is the gradient of the output; for a weight gradient, those of the forward pass.
struct ConvolutionProblem {
  Direction direction = Direction::forward;
  std::int64_t in_rows = 0;
  std::int64_t out_rows = 0;
  std::int64_t pairs = 0;
  std::int64_t offsets = 0;
  std::int64_t in_channels = 0;
  std::int64_t out_channels = 0;
  std::int64_t groups = 1;
  DType dtype = DType::f32;
  bool identity = false;   // one offset, and every row meets itself alone (1×1×1, the same sites)
  bool on_device = false;   // pairs are not known: 0
  // Inputs in tensors of their own. The last `second_channels` of the input's channels lie in a
  // second tensor; a shortcut is a further input that every output meets row by row.
  std::int64_t second_channels = 0;
  std::int64_t shortcut_channels = 0;
  std::int64_t shortcut_second_channels = 0;   // of shortcut_channels

  /// More tensors than one meet weights.
  bool has_more_inputs() const { return second_channels > 0 || shortcut_channels > 0; }

  /// Multiply-adds times two over the pairs that exist.
  double flop() const;
  /// Share of (output, offset) that are pairs: 1 for a dense grid without a border.
  double fullness() const;
};

struct ConvolutionPlan {
  Dataflow dataflow = Dataflow::fetch_on_demand;
  std::int64_t tile_rows = 0;   // outputs whose sums stay in cache together; sum_over_pairs: 0
  bool sort_by_mask = false;    // implicit GEMM
  int splits = 1;               // implicit GEMM: parts of the offsets, summed at the end
  /// One kernel reads a second tensor and a shortcut where they lie. Otherwise tensors are
  /// concatenated, and the shortcut is multiplied before and added as a residual.
  bool fuses_inputs = false;
  std::string kernel{};   // on a device: the specification that runs
  std::string reason{};   // one sentence

  /// "fetch_on_demand/512", "implicit_gemm/512/sorted/splits 2", "sum_over_pairs"
  std::string name() const;
};

/// A plan without measuring. On a device tile sizes follow from the kernel that is picked. `wanted`
/// overrides the choice of dataflow; the rest still follows. UserError when it cannot be had: a
/// weight gradient has one way.
ConvolutionPlan plan_convolution(const ConvolutionProblem& problem,
                                 std::optional<Dataflow> wanted = std::nullopt);

/// The problem, the choice, and why the others were not chosen, in a few lines of words.
std::string explain(const ConvolutionProblem& problem, const ConvolutionPlan& plan);

}   // namespace pumice
