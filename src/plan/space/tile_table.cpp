// The rules behind the table come from measurements on an H200; a row says which.
#include "plan/space/tile_table.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include <pumice/core/error.hpp>

#include "plan/space/bundled_sizes.hpp"
#include "plan/space/fitting.hpp"

namespace pumice::cuda {
namespace {

/// Channels of a stage, up to `widest`: as wide as the channels allow without padding, whole
/// multiples of 128 bytes before anything else.
std::int32_t depth_for(const TileSpec& spec, std::int32_t widest) {
  const std::int32_t bytes = element_bytes(spec.operand);
  const std::int32_t line = 128 / bytes, least = 32 / bytes;
  const std::int32_t channels = round_up(spec.in_channels, least);
  if (channels <= widest && channels <= line) return channels;
  if (channels % line == 0) return std::min(line, widest);
  if (channels <= widest) return channels;   // 96 of 16 bits: three sub-tiles of 64 bytes
  for (std::int32_t depth = widest / least * least; depth >= line / 2; depth -= least)
    if (channels % depth == 0) return depth;
  return std::min(line, widest);
}

/// Columns of a tile: the output channels in equal shares of at most `widest`; one or two tiles
/// more where that pads less.
std::int32_t columns_for(const TileSpec& spec, std::int32_t widest, std::int32_t step) {
  const std::int32_t fewest = divide_up(spec.out_channels, widest);
  std::int32_t best = 0;
  for (std::int32_t tiles = fewest; tiles <= fewest + 2; ++tiles) {
    const std::int32_t columns = round_up(divide_up(spec.out_channels, tiles), step);
    if (best == 0 || columns * tiles < best * divide_up(spec.out_channels, best)) best = columns;
  }
  return best;
}

/// One row of the table of wgmma tiles.
struct WarpgroupShape {
  std::int32_t rows, warpgroups, blocks_per_sm, most_columns, widest_depth;
};

// 256 rows halve the traffic of weights and win for many rows and few channels; two blocks of 128
// rows on a multiprocessor hide each other's first and last steps; 64 rows fill the machine when
// there are few.
constexpr std::array kWarpgroupShapes{
    WarpgroupShape{256, 2, 1, 128, 96}, WarpgroupShape{128, 2, 1, 256, 96},
    WarpgroupShape{128, 2, 2, 96, 64},  WarpgroupShape{128, 1, 2, 128, 64},
    WarpgroupShape{64, 1, 2, 128, 64},
};

/// One row of the table of tiles whose warps both copy and multiply, for a range of output
/// channels.
struct WarpShape {
  std::int32_t rows, row_warps, column_warps, blocks_per_sm, most_columns, least_out, most_out;
};

// Warps of 32 × 64 up to 64 × 64 sums: larger ones read shared memory less often for each product.
// Tiles of 64 rows are for few rows.
constexpr std::array kMatrixShapes{
    WarpShape{128, 4, 1, 4, 32, 1, 32},     WarpShape{64, 4, 1, 4, 32, 1, 32},
    WarpShape{128, 4, 1, 3, 64, 33, kAny},  WarpShape{128, 4, 1, 2, 96, 65, 96},
    WarpShape{128, 4, 2, 2, 128, 97, kAny}, WarpShape{64, 2, 2, 3, 128, 97, kAny},
    WarpShape{64, 4, 1, 4, 64, 33, 96},
};
// 8 × 8 sums a lane.
constexpr std::array kLaneShapes{
    WarpShape{128, 4, 1, 4, 32, 1, 32},
    WarpShape{128, 4, 1, 3, 64, 33, kAny},
    WarpShape{64, 4, 1, 4, 64, 1, kAny},
    WarpShape{64, 2, 2, 3, 128, 97, kAny},
};

void keep(std::vector<TileSpec>& specs, const TileSpec& spec, std::uint32_t architecture) {
  // Rings of wgmma cover the gather's latency alone; elsewhere several blocks share that task, and
  // one number of stages for all architectures keeps the table short.
  keep_fitting(specs, spec, architecture, spec.instruction == Instruction::wgmma ? 8 : 4,
               [](const TileSpec& tried) { return shared_bytes(tried); });
}

void add_warpgroup_tiles(std::vector<TileSpec>& specs, const TileProblem& problem) {
  for (const WarpgroupShape& shape : kWarpgroupShapes) {
    TileSpec spec = base_spec(problem);
    spec.instruction = Instruction::wgmma;
    spec.tile_rows = shape.rows;
    spec.row_warps = 4 * shape.warpgroups;
    spec.column_warps = 1;
    spec.blocks_per_sm = shape.blocks_per_sm;
    spec.tile_columns = columns_for(spec, shape.most_columns, 8);
    spec.tile_depth = depth_for(spec, shape.widest_depth * 2 / element_bytes(spec.operand));
    keep(specs, spec, problem.architecture);
  }
}

void add_warp_tiles(std::vector<TileSpec>& specs, const TileProblem& problem,
                    std::span<const WarpShape> shapes) {
  const bool lanes = problem.operand == ElementType::f32;
  for (const WarpShape& shape : shapes) {
    if (problem.out_channels < shape.least_out || problem.out_channels > shape.most_out) continue;
    TileSpec spec = base_spec(problem);
    spec.instruction = lanes ? Instruction::fma : Instruction::mma_sync;
    const std::int32_t step = (lanes ? 32 : 16) * shape.column_warps;
    spec.tile_rows = shape.rows;
    spec.row_warps = shape.row_warps;
    spec.column_warps = shape.column_warps;
    spec.blocks_per_sm = shape.blocks_per_sm;
    spec.tile_columns = columns_for(spec, round_up(shape.most_columns, step), step);
    spec.tile_depth = depth_for(spec, 64 / element_bytes(spec.operand));
    keep(specs, spec, problem.architecture);
  }
}

/// One row of the table of tiles that keep their weights.
struct ResidentShape {
  std::int32_t rows, row_warps, entries_in_flight, blocks_per_sm, most_channels;
};
constexpr std::array kResidentShapes{
    ResidentShape{256, 8, 3, 3, 16},
    ResidentShape{128, 8, 4, 3, 16},
    ResidentShape{256, 8, 3, 2, 32},
};

/// 16-bit types, one source, and weights that leave room for two blocks on a multiprocessor.
void add_resident_tiles(std::vector<TileSpec>& specs, const TileProblem& problem) {
  constexpr std::int32_t kMostWeightBytes = 64 * 1024;
  for (const ResidentShape& shape : kResidentShapes) {
    const std::int32_t channels = std::max(problem.in_channels, problem.out_channels);
    if (channels > shape.most_channels || (shape.most_channels > 16 && channels <= 16)) continue;
    TileSpec spec = base_spec(problem);
    spec.instruction = Instruction::mma_sync;
    spec.resident_offsets = static_cast<std::int32_t>(problem.offsets);
    spec.tile_rows = shape.rows;
    spec.row_warps = shape.row_warps;
    spec.column_warps = 1;
    spec.stages = shape.entries_in_flight;
    spec.blocks_per_sm = shape.blocks_per_sm;
    spec.tile_columns = round_up(spec.out_channels, 16);
    spec.tile_depth = spec.in_channels <= 16 ? 16 : 32;
    if (resident_bytes(spec) > kMostWeightBytes || !is_valid(spec)) continue;
    // Narrow rows are stored piece by piece, which takes more registers than a third block leaves.
    if (output_copy_bytes(spec) < kChunkBytes) spec.blocks_per_sm = std::min(spec.blocks_per_sm, 2);
    while (spec.blocks_per_sm > 1 && (architectures(spec) & problem.architecture) == 0)
      --spec.blocks_per_sm;
    if ((architectures(spec) & problem.architecture) != 0) specs.push_back(spec);
  }
}

/// Of a window of a layer that halves the sites, 2x2x2.
constexpr std::int64_t kFewOffsets = 8;

// A stage costs the lines of 128 bytes that it gathers and those of weights, which every tile reads
// again, and a barrier. Constants of wgmma and of tiles that keep their weights are fitted to the
// candidates of all layers of MinkUNet42, half its widths, CenterPoint and SECOND in f16 and tf32
// (`pumice explain --measure`) and of 30 layers in bf16 (pumice_cuda_tile_benchmark), on an H200
// and an H100; those of the others to 28 layers of that benchmark, on an H200.

double warpgroup_stage(const TileSpec& spec, double lines, std::int64_t offsets) {
  // Tiles of one block of rows skip every entry that it lacks. Where sites are halved there is less
  // to skip, and narrow ones do not keep the tensor cores busy.
  const bool skips = spec.tile_rows == kBlockRows;
  const double skipped = !skips                    ? 1.0
                         : offsets <= kFewOffsets  ? 0.69
                         : spec.tile_columns <= 64 ? 0.84
                                                   : 0.57;
  const bool tall = spec.tile_rows > 128 && spec.tile_columns > 64;
  const bool together = spec.tile_rows == 128 && spec.blocks_per_sm > 1;
  const double stage = (0.9 * spec.tile_rows + 1.19 * spec.tile_columns) * lines * skipped + 31.2;
  return stage * (tall ? 1.1 : together ? 1.01 : 1.0);
}

double stage_cost(const TileSpec& spec, std::int64_t offsets) {
  const double lines = depth_bytes(spec) / 128.0;
  if (spec.resident_offsets > 0) return 1.23 * spec.tile_rows * lines + 32;   // weights are there
  if (spec.instruction == Instruction::wgmma) return warpgroup_stage(spec, lines, offsets);
  const double skipped = spec.tile_rows == kBlockRows ? 0.55 : 1.0;
  return 1.1 * ((0.8 * spec.tile_rows + 0.97 * spec.tile_columns) * lines * skipped + 35);
}

const TileSpec& cheapest(const std::vector<TileSpec>& specs, TileProblem problem) {
  problem.rows = rounded_rows(problem.rows);
  return *std::min_element(specs.begin(), specs.end(), [&](const auto& a, const auto& b) {
    return tile_cost(a, problem) < tile_cost(b, problem);
  });
}

std::vector<TileProblem> standard_problems(std::uint32_t architecture) {
  std::vector<TileProblem> problems;
  for (const ElementType operand :
       {ElementType::f16, ElementType::bf16, ElementType::tf32, ElementType::f32}) {
    for (const auto& [in, out] : standard_channels()) {
      problems.push_back({.operand = operand,
                          .output = operand == ElementType::tf32 ? ElementType::f32 : operand,
                          .in_channels = in,
                          .out_channels = out,
                          .architecture = architecture});
    }
  }
  return problems;
}

std::vector<TileSpec> some_candidates(const TileProblem& problem) {
  std::vector<TileSpec> specs = tile_candidates(problem);
  PUMICE_EXPECTS(!specs.empty(), "no tile kernel for ", problem.in_channels, " to ",
                 problem.out_channels, " channels in ", problem.groups,
                 " groups: fewer channels in a group, or another dataflow");
  return specs;
}

}   // namespace

TileSpec base_spec(const TileProblem& problem) {
  TileSpec spec;
  spec.operand = problem.operand;
  spec.output = problem.output;
  spec.gather = problem.gather;
  spec.write = problem.write;
  spec.in_channels = problem.in_channels;
  spec.first_channels = problem.first_channels == 0 ? problem.in_channels : problem.first_channels;
  spec.out_channels = problem.out_channels;
  spec.groups = problem.groups;
  spec.shortcut_channels = problem.shortcut_channels;
  spec.shortcut_first_channels = problem.shortcut_first_channels == 0
                                     ? problem.shortcut_channels
                                     : problem.shortcut_first_channels;
  spec.activations = problem.activations;
  return spec;
}

std::int64_t rounded_rows(std::int64_t rows) {
  const int drop = dropped_bits(rows);
  if (drop <= 0) return rows;
  const std::int64_t half = std::int64_t{1} << (drop - 1);
  return std::min((rows + half) >> drop << drop, std::int64_t{1} << kMostRowBits);
}

/// Stages of all tiles over the machine, and those of one tile more, since the longest one starts
/// first but ends last. Summed over the layers of a network, what it picks takes at most 7 % longer
/// than the fastest candidates, splits among them, on both devices.
double tile_cost(const TileSpec& spec, const TileProblem& problem) {
  const double tiles = std::max(1.0, static_cast<double>(problem.rows) / spec.tile_rows) *
                       column_tiles(spec) * spec.groups / problem.multiprocessors;
  const double together = std::clamp(tiles, 1.0, static_cast<double>(spec.blocks_per_sm));
  const double last = spec.instruction == Instruction::fma ? 1.0 : 1.05;
  return depth_chunks(spec) * stage_cost(spec, problem.offsets) * (tiles + last * together);
}

std::vector<TileSpec> tile_candidates(const TileProblem& problem) {
  std::vector<TileSpec> specs;
  const bool tensor_cores = problem.operand != ElementType::f32;
  if (element_bytes(problem.operand) == 2) add_resident_tiles(specs, problem);
  const std::size_t resident = specs.size();
  if (tensor_cores && problem.architecture == kSm90a && problem.out_channels >= 24)
    add_warpgroup_tiles(specs, problem);
  if (!tensor_cores) {
    add_warp_tiles(specs, problem, kLaneShapes);
  } else if (specs.size() == resident || problem.out_channels <= 32) {
    add_warp_tiles(specs, problem, kMatrixShapes);
  }
  return specs;
}

TileSpec choose_tile(const TileProblem& problem) {
  return cheapest(some_candidates(problem), problem);
}

namespace {

/// Adds those that are picked for any number of rows.
void pick_for_all_rows(const std::vector<TileSpec>& specs, TileProblem problem,
                       std::vector<TileSpec>& picked) {
  for_all_rows([&](std::int64_t rows) {
    problem.rows = rows;
    const TileSpec& spec = cheapest(specs, problem);
    if (std::find(picked.begin(), picked.end(), spec) == picked.end()) picked.push_back(spec);
    return picked.size() < specs.size();
  });
}

}   // namespace

std::vector<TileSpec> pickable_tiles(TileProblem problem) {
  const std::vector<TileSpec> specs = some_candidates(problem);
  std::vector<TileSpec> picked;
  for (problem.multiprocessors = kFewestMultiprocessors;
       problem.multiprocessors <= kMostMultiprocessors; ++problem.multiprocessors)
    pick_for_all_rows(specs, problem, picked);
  return picked;
}

std::vector<TileSpec> tiles_of_other_rows(const TileProblem& problem) {
  std::vector<TileSpec> picked;
  if (problem.multiprocessors < kFewestMultiprocessors ||
      problem.multiprocessors > kMostMultiprocessors)
    return picked;
  pick_for_all_rows(some_candidates(problem), problem, picked);
  return picked;
}

std::vector<std::pair<std::int32_t, std::int32_t>> standard_channels() {
  // Forward, in the order of MinkUNet42, CenterPoint, SECOND, half of MinkUNet42's widths, and the
  // wide layers of 3-D generation.
  const std::pair<std::int32_t, std::int32_t> forward[] = {
      {4, 32},    {32, 32},   {32, 64},   {64, 64},   {64, 128}, {128, 128}, {128, 256},
      {256, 256}, {384, 256}, {256, 128}, {192, 128}, {128, 96}, {96, 96},   {5, 16},
      {16, 16},   {16, 32},   {4, 16},    {48, 48},   {64, 48},  {512, 512}, {1024, 1024}};
  std::vector<std::pair<std::int32_t, std::int32_t>> all;
  for (const auto& [in, out] : forward) {
    for (const auto& pair : {std::pair(in, out), std::pair(out, in)})   // and the input gradient
      if (std::find(all.begin(), all.end(), pair) == all.end()) all.push_back(pair);
  }
  return all;
}

std::vector<TileSpec> standard_specs(std::uint32_t architecture) {
  std::vector<TileSpec> specs;
  for (const TileProblem& problem : standard_problems(architecture)) {
    const std::vector<TileSpec> candidates = tile_candidates(problem);
    specs.insert(specs.end(), candidates.begin(), candidates.end());
  }
  return specs;
}

std::vector<TileSpec> standard_pair_specs(std::uint32_t architecture) {
  std::vector<TileSpec> specs;
  for (TileProblem problem : standard_problems(architecture)) {
    for (const Write write : {Write::add, Write::slots}) {
      for (const std::int64_t rows : {1000, 100000, 1000000}) {
        problem.write = write;
        problem.rows = rows;
        const TileSpec spec = choose_tile(problem);
        if (std::find(specs.begin(), specs.end(), spec) == specs.end()) specs.push_back(spec);
      }
    }
  }
  return specs;
}

}   // namespace pumice::cuda
