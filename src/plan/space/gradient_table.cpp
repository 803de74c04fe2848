// Which kernels there are comes from measurements on an H200: wgmma from 64 channels on both sides
// (64 × 64: 16 µs against 26 for 60k rows), mma.sync below. Their costs decide between them.
#include "plan/space/gradient_table.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include <pumice/core/error.hpp>

#include "plan/space/bundled_sizes.hpp"
#include "plan/space/fitting.hpp"
#include "plan/space/gradient_cost.hpp"
#include "plan/space/tile_table.hpp"

namespace pumice::cuda {
namespace {

/// Equal shares of at most `widest`.
std::int32_t share(std::int32_t channels, std::int32_t widest, std::int32_t step) {
  return round_up(divide_up(channels, divide_up(channels, widest)), step);
}

/// Specifications are the same for all kernels up to 7³.
constexpr std::int32_t kLeastOffsets = 343;

void keep(std::vector<GradientSpec>& specs, const GradientSpec& spec,
          const GradientProblem& problem) {
  const std::int32_t offsets = std::max(problem.offsets, kLeastOffsets);
  keep_fitting(specs, spec, problem.architecture, spec.instruction == Instruction::wgmma ? 6 : 4,
               [&](const GradientSpec& tried) { return shared_bytes(tried, offsets); });
}

/// Tiles of dW for a range of the smaller number of channels.
struct WarpgroupShape {
  std::int32_t warpgroups, most_out, pairs, blocks_per_sm, least, most;
};
constexpr std::array kWarpgroupShapes{
    WarpgroupShape{2, 256, 64, 1, 128, kAny},
    WarpgroupShape{2, 128, 64, 1, 65, kAny},
    WarpgroupShape{1, 128, 64, 2, 64, 127},
};

struct WarpShape {
  std::int32_t most_in, most_out, in_warps, out_warps, blocks_per_sm, least, most;
};
constexpr std::array kWarpShapes{
    WarpShape{16, 32, 1, 1, 16, 1, 16},
    WarpShape{32, 32, 2, 1, 8, 17, 32},
    WarpShape{64, 64, 2, 2, 4, 33, kAny},
    WarpShape{96, 96, 2, 2, 3, 65, 96},
};

}   // namespace

GradientSpec base_spec(const GradientProblem& problem) {
  GradientSpec spec;
  spec.operand = problem.operand;
  spec.write = problem.write;
  spec.in_channels = problem.in_channels;
  spec.out_channels = problem.out_channels;
  spec.groups = problem.groups;
  return spec;
}

std::vector<GradientSpec> gradient_candidates(const GradientProblem& problem) {
  std::vector<GradientSpec> specs;
  const std::int32_t least = std::min(problem.in_channels, problem.out_channels);
  if (problem.architecture == kSm90a && element_bytes(problem.operand) == 2) {
    for (const WarpgroupShape& shape : kWarpgroupShapes) {
      if (least < shape.least || least > shape.most) continue;
      GradientSpec spec = base_spec(problem);
      spec.instruction = Instruction::wgmma;
      spec.in_warps = 4 * shape.warpgroups;
      spec.out_warps = 1;
      spec.tile_in = 64 * shape.warpgroups;
      spec.tile_out = share(problem.out_channels, shape.most_out, 8);
      spec.tile_pairs = shape.pairs;
      spec.blocks_per_sm = shape.blocks_per_sm;
      keep(specs, spec, problem);
    }
    if (specs.size() > 1) return specs;
  }
  const bool lanes = problem.operand == ElementType::f32;
  for (const WarpShape& shape : kWarpShapes) {
    if (least < shape.least || least > shape.most) continue;
    GradientSpec spec = base_spec(problem);
    spec.instruction = lanes ? Instruction::fma : Instruction::mma_sync;
    const std::int32_t step = lanes ? 32 : 16;
    spec.in_warps = shape.in_warps;
    spec.out_warps = shape.out_warps;
    // Stages of 32-bit types are twice as large, and their fragments need more registers.
    spec.blocks_per_sm =
        element_bytes(problem.operand) == 4 ? (shape.blocks_per_sm + 1) / 2 : shape.blocks_per_sm;
    spec.tile_in = share(problem.in_channels, shape.most_in, 16 * shape.in_warps);
    spec.tile_out = share(problem.out_channels, round_up(shape.most_out, step * shape.out_warps),
                          step * shape.out_warps);
    spec.tile_pairs = 32;
    keep(specs, spec, problem);
  }
  return specs;
}

namespace {

std::vector<GradientSpec> some_candidates(const GradientProblem& problem) {
  std::vector<GradientSpec> specs = gradient_candidates(problem);
  PUMICE_EXPECTS(!specs.empty(), "no weight gradient kernel for ", problem.in_channels, " to ",
                 problem.out_channels, " channels in ", problem.groups, " groups and ",
                 problem.offsets, " offsets: fewer channels in a group, or a smaller kernel");
  return specs;
}

/// As many blocks as run at a time, or half of them. Twice as many never won by more than 2 %.
GradientChoice cheapest(const std::vector<GradientSpec>& specs, GradientProblem problem) {
  problem.rows = rounded_rows(problem.rows);
  GradientChoice best;
  double least = std::numeric_limits<double>::infinity();
  for (const GradientSpec& spec : specs) {
    const std::int64_t filling = gradient_blocks(spec, problem.multiprocessors);
    for (const std::int64_t blocks : {filling, filling / 2}) {
      if (blocks == 0) continue;
      const double cost = gradient_cost(spec, blocks, problem);
      if (cost >= least) continue;
      least = cost;
      best = {spec, blocks == filling ? 0 : static_cast<std::int32_t>(blocks)};
    }
  }
  return best;
}

}   // namespace

GradientChoice choose_gradient(const GradientProblem& problem) {
  GradientProblem on_known_size = problem;   // which `pickable_gradients` goes through
  on_known_size.multiprocessors =
      std::clamp(problem.multiprocessors, kFewestMultiprocessors, kMostMultiprocessors);
  return cheapest(some_candidates(problem), on_known_size);
}

std::int64_t gradient_blocks(const GradientSpec& spec, int multiprocessors) {
  const std::int64_t slots = std::int64_t{multiprocessors} * spec.blocks_per_sm;
  return std::max<std::int64_t>(1, slots / gradient_tiles(spec));
}

std::vector<GradientSpec> pickable_gradients(GradientProblem problem) {
  const std::vector<GradientSpec> specs = some_candidates(problem);
  if (specs.size() == 1) return specs;
  std::vector<GradientSpec> picked;
  for (problem.multiprocessors = kFewestMultiprocessors;
       problem.multiprocessors <= kMostMultiprocessors; ++problem.multiprocessors) {
    for_all_rows([&](std::int64_t rows) {
      problem.rows = rows;
      const GradientSpec spec = cheapest(specs, problem).spec;
      if (std::find(picked.begin(), picked.end(), spec) == picked.end()) picked.push_back(spec);
      return picked.size() < specs.size();
    });
  }
  return picked;
}

std::vector<GradientSpec> standard_gradients(std::uint32_t architecture) {
  std::vector<GradientSpec> specs;
  for (const ElementType operand :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f32}) {
    for (const auto& [in, out] : standard_channels()) {
      const auto candidates = gradient_candidates({.operand = operand,
                                                   .in_channels = in,
                                                   .out_channels = out,
                                                   .architecture = architecture});
      specs.insert(specs.end(), candidates.begin(), candidates.end());
    }
  }
  return specs;
}

}   // namespace pumice::cuda
