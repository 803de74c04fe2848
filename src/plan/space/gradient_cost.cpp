// The constants are fitted to 30 layers of MinkUNet42, CenterPoint and shells of voxels on an H200
// (`pumice_cuda_tile_benchmark --gradient --shares`): 306 times in bf16 with both ways of adding
// and 101 in f32, of every kernel with three numbers of blocks, and the fastest of each layer in
// tf32. They are least squares of relative errors with no negative costs, and with the pairs that
// the layers had.
#include "plan/space/gradient_cost.hpp"

#include <algorithm>
#include <cmath>

namespace pumice::cuda {
namespace {

/// Microseconds.
struct Costs {
  double line;       // of 128 bytes, gathered by a multiprocessor
  double products;   // 1,024 multiply-adds, those of padded channels too
  double sums;       // 1,024 f32 sums that leave a block where an offset ends
  double wait;       // of a block for a chunk of pairs, whatever else runs beside it
  double start;
};

constexpr Costs kWarpgroups{0.0012, 0.00007, 0.249, 0.237,
                            3.60};   // 11 % off in bf16, with slots too
constexpr Costs kWarps16{0.00054, 0.00038, 0.154, 0.404, 7.13};
constexpr Costs kWarpsTf32{0, 0.00240, 0, 0.684, 3.79};   // 6 %
constexpr Costs kLanesF32{0, 0.00664, 0.208, 1.374, 0};   // 10 %

// Slots were measured in bf16; they are f32 sums in every type.
constexpr double kSlotSums = 0.263;    // 1,024 sums that a block writes to slots, beside `sums`
constexpr double kSlotReads = 0.494;   // 1,024 sums of slots, read by a multiprocessor
constexpr double kSlotTurn = 0.357;    // a slot of the longest offset, which are read in turn

const Costs& costs_of(const GradientSpec& spec) {
  if (spec.instruction == Instruction::wgmma) return kWarpgroups;
  if (spec.instruction == Instruction::fma) return kLanesF32;
  return element_bytes(spec.operand) == 2 ? kWarps16 : kWarpsTf32;
}

}   // namespace

double gradient_cost(const GradientSpec& spec, std::int64_t blocks,
                     const GradientProblem& problem) {
  const Costs& costs = costs_of(spec);
  const auto shares = static_cast<double>(blocks);
  const auto offsets = static_cast<double>(problem.offsets);
  const double machine = problem.multiprocessors;
  const auto pairs_of_row =
      static_cast<double>(std::clamp<std::int64_t>(problem.offsets, 1, kLikelyPairs));

  // Blocks of a multiprocessor share its bandwidth and its products; further ones wait for them.
  const double grid = shares * gradient_tiles(spec);
  const double waves = std::ceil(grid / (machine * spec.blocks_per_sm));
  const double turns =
      waves * std::clamp(grid / machine, 1.0, static_cast<double>(spec.blocks_per_sm));

  // An offset's last chunk is not full: a chunk more for each.
  const double chunks =
      (static_cast<double>(problem.rows) * pairs_of_row / spec.tile_pairs + offsets) / shares;
  const double pairs = chunks * spec.tile_pairs;
  const double channels = static_cast<double>(spec.in_channels) / in_tiles(spec) +
                          static_cast<double>(spec.out_channels) / out_tiles(spec);
  const double tile = static_cast<double>(spec.tile_in) * spec.tile_out / 1024;
  const double flushed = (offsets / shares + 1) * tile;
  double cost = costs.start + waves * chunks * costs.wait +
                turns * (pairs * channels * element_bytes(spec.operand) / 128 * costs.line +
                         pairs * tile * costs.products + flushed * costs.sums);
  if (spec.write == Write::slots) {
    const double slice =
        static_cast<double>(spec.in_channels) * spec.out_channels * spec.groups / 1024;
    // The centre of a window has a pair for every row, and so a share 1 / pairs_of_row of slots.
    cost += turns * flushed * kSlotSums + (shares + offsets) * slice / machine * kSlotReads +
            shares / pairs_of_row * kSlotTurn;
  }
  return cost;
}

}   // namespace pumice::cuda
