// Which tile specifications can be picked for a convolution, and which one is picked unmeasured.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <pumice/shared/tile_limits.h>
#include <pumice/shared/tile_spec.h>

namespace pumice::cuda {

/// What is known of a convolution before it runs.
struct TileProblem {
  ElementType operand = ElementType::f16;
  ElementType output = ElementType::f16;
  Gather gather = Gather::map;
  Write write = Write::store;
  std::int32_t in_channels = 0;      // of a group, both sources
  std::int32_t first_channels = 0;   // 0: there is one source
  std::int32_t out_channels = 0;     // of a group
  std::int32_t groups = 1;
  std::int32_t shortcut_channels = 0;
  std::int32_t shortcut_first_channels = 0;   // 0: it has one source
  ActivationSet activations = ActivationSet::sloped;
  std::int64_t rows = 0;       // output rows: a capacity will do
  std::int64_t offsets = 27;   // kernel volume
  std::uint32_t architecture = kSm90a;
  std::int32_t multiprocessors = 132;

  friend bool operator==(const TileProblem&, const TileProblem&) = default;
};

/// A specification with the parts that the problem fixes, and no schedule.
TileSpec base_spec(const TileProblem& problem);

/// Rows are taken as one of 16 numbers an octave, so that there are few enough of them to go
/// through when kernels are built ahead.
std::int64_t rounded_rows(std::int64_t rows);

/// Valid specs for the problem's architecture, the likeliest first; at most eight. Only the number
/// of rows decides between them, so that a second input compiles nothing new.
std::vector<TileSpec> tile_candidates(const TileProblem& problem);

/// How long a spec takes, in no unit; only those of one problem compare.
double tile_cost(const TileSpec& spec, const TileProblem& problem);

/// The cheapest: no measurement, the same answer for the same problem. UserError where no kernel
/// fits, with the reason.
TileSpec choose_tile(const TileProblem& problem);

/// Every spec that choose_tile picks for this problem with some number of rows, on some device of
/// its architecture.
std::vector<TileSpec> pickable_tiles(TileProblem problem);
/// Those that are picked on this machine for any number of rows; none for a machine of a size that
/// `pickable_tiles` leaves out. So they are in bundles.
std::vector<TileSpec> tiles_of_other_rows(const TileProblem& problem);

/// Input and output channels of the layers of well-known networks, forward and backward.
std::vector<std::pair<std::int32_t, std::int32_t>> standard_channels();

/// Every spec that can be picked for the channel pairs of well-known networks, in all types: what
/// is checked as a whole and built ahead. Fewer than 1,500.
std::vector<TileSpec> standard_specs(std::uint32_t architecture);

/// The same for fetch-on-demand, whose kernels are compiled when they are asked for: the spec that
/// is picked for few and for many rows, for either way of adding products up.
std::vector<TileSpec> standard_pair_specs(std::uint32_t architecture);

}   // namespace pumice::cuda
