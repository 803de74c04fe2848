// How a convolution is run: a value that the executor obeys. It is chosen (pumice/plan/choose.hpp),
// measured, written to a file or made by hand, and nothing behind it chooses again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <pumice/plan/problem.hpp>
#include <pumice/plan/schedule.hpp>

namespace pumice {

/// The first three are ways to run a forward pass or an input gradient, for a caller to choose
/// from; the last is how every weight gradient is made.
enum class Dataflow : unsigned char {
  gather_gemm_scatter,
  fetch_on_demand,
  implicit_gemm,
  sum_over_pairs,
};

std::string_view name_of(Dataflow dataflow);
/// "gather_gemm_scatter", "fetch_on_demand", "implicit_gemm"; UserError for others.
Dataflow parse_dataflow(std::string_view name);

struct ConvolutionPlan {
  Dataflow dataflow = Dataflow::fetch_on_demand;
  std::int64_t tile_rows = 0;   // CPU: outputs whose sums stay in cache together; 0: no tiles
  bool sort_by_mask = false;    // implicit GEMM: outputs with like neighbours share a tile
  int splits = 1;               // implicit GEMM: parts of the offsets, summed at the end
  /// How products reach the output on a device: store, or sums in memory that are finished
  /// afterwards. `add` adds in any order, `slots` gives the same bits every time.
  Write write = Write::store;
  /// One kernel reads a second tensor and a shortcut where they lie. Otherwise tensors are
  /// concatenated, and the shortcut is multiplied before and added as a residual.
  bool fuses_inputs = false;
  std::optional<TileSchedule> tile{};           // a device's, but of cuBLAS and depthwise kernels
  std::optional<GradientSchedule> gradient{};   // a device's
  std::string reason{};                         // one sentence

  /// "fetch_on_demand/512", "implicit_gemm/512/sorted/splits 2", "sum_over_pairs"; on a device
  /// "implicit_gemm/wgmma_128x96x96_s5_w8x1_b2".
  std::string name() const;
  /// But for the reason.
  bool runs_like(const ConvolutionPlan& other) const;
};

using PlanPtr = std::shared_ptr<const ConvolutionPlan>;

/// JSON of one line, and back: {"dataflow":"implicit_gemm","sort_by_mask":true,"tile":{…}}. Without
/// the reason. UserError where the text is no plan; whether a plan suits a problem, `check` says.
std::string to_text(const ConvolutionPlan& plan);
ConvolutionPlan parse_plan(std::string_view text);

}   // namespace pumice
