// Picks the specification and hands the arguments over.
#include "kernels/cuda/entry_launch.hpp"

#include <algorithm>

#include <pumice/shared/entry_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "graphs/cuda/balance.hpp"
#include "kernels/cuda/arrival_sets.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a multiprocessor that sum parts of long rows; they walk on.
constexpr std::int64_t kFinishBlocks = 8;
/// Blocks of a multiprocessor that leave shares of the gradient of attention: four times those that
/// run at a time, so that none is waited for.
constexpr std::int64_t kShareBlocks = std::int64_t{4} * entry_blocks(ScoreGradientSpec{});
/// Entries of an average row for each team that shares it.
constexpr std::int64_t kEntriesOfWay = 2;
constexpr std::int32_t kWarpLanes = 32;

template <class Spec> const jit::Source& source_of(const Spec& spec) {
  static SourceTable<Spec, SpecHash<Spec>> sources;
  return sources.get(spec, [](const Spec& wanted) {
    return jit::Source{.name = entry_name(wanted), .text = entry_source(wanted)};
  });
}

std::int64_t rounded_up(std::int64_t items, std::int64_t of) {
  return (items + of - 1) / of;
}

/// Rows, and parts of long ones, of which the host knows how many there can be.
std::int64_t most_items(const CsrView& pattern) {
  return pattern.rows +
         (pattern.long_rows.counts == nullptr ? 0 : most_row_parts(pattern.entries()));
}

std::int64_t runs_of(const CsrView& pattern, std::int32_t units) {
  return pattern.unit_row.empty()
             ? pattern.rows
             : rounded_up(static_cast<std::int64_t>(pattern.unit_row.size()) - 1, units);
}

/// `layers`: tiles of channels, or heads, along the second axis.
jit::LaunchShape team_each(std::int64_t items, std::int64_t layers, const EntrySchedule& schedule) {
  const std::int32_t threads = schedule.team * std::max(schedule.ways, 1);
  return {.blocks = rounded_up(items * threads, kEntryThreads),
          .blocks_y = static_cast<std::int32_t>(layers),
          .threads = kEntryThreads};
}

/// As many teams of a warp on a row as it has entries for on average: rows of one warp wait for the
/// longest of them.
std::int32_t ways_of_row(const CsrView& pattern, const EntrySchedule& schedule) {
  const std::int64_t mean = pattern.entries() / std::max<std::int64_t>(pattern.rows, 1);
  std::int32_t ways = 1;
  while (ways * schedule.team < 32 && ways * kEntriesOfWay <= mean)
    ways *= 2;
  return ways;
}

EntryOperation operation_of(const GatherReduceLaunch& launch, EntryReduction reduction) {
  if (launch.picked.defined()) return EntryOperation::picked;
  const bool most = reduction == EntryReduction::max || reduction == EntryReduction::min;
  return most ? EntryOperation::most : EntryOperation::sum;
}

/// As a plan has it: rows one by one, and whole.
CsrView planned(CsrView pattern, const TeamSchedule& teams) {
  if (teams.units == 0) pattern.unit_row = {};
  if (teams.part_teams == 0) pattern.long_rows = {};
  return pattern;
}

/// A warp for each window of entries.
jit::LaunchShape warps_of_windows(const CsrView& pattern, std::int64_t heads) {
  const std::int64_t windows = rounded_up(pattern.rows + pattern.entries(), kWarpLanes);
  return {.blocks = rounded_up(windows, kEdgeBlockWarps),
          .blocks_y = static_cast<std::int32_t>(heads),
          .threads = kWarpLanes * kEdgeBlockWarps};
}

}   // namespace

void launch_gather_reduce(jit::KernelRunner& runner, const GatherReduceLaunch& launch,
                          EntryReduction reduction, const TeamSchedule& teams) {
  const std::int64_t channels = launch.features.extent(1);
  if (launch.pattern.rows == 0 || channels == 0) return;
  const CsrView pattern = planned(launch.pattern, teams);
  const std::int64_t heads = launch.values.defined() ? launch.values.extent(1) : 1;
  const ElementType type = storage_element(launch.features.dtype());
  const GatherReduceSpec spec{.type = type,
                              .operation = operation_of(launch, reduction),
                              .weighted = launch.values.defined(),
                              .headed = heads > 1,
                              .whole_heads = heads > 1 && channels / heads % entry_chunk(type) == 0,
                              .numbered = !pattern.entry.empty(),
                              .shared = launch.shared_by != nullptr,
                              .added = launch.added.any(),
                              .schedule = kernel_schedule(type, channels, teams)};
  GatherArguments arguments{.pattern = pattern_ref(pattern),
                            .features = launch.features.raw(),
                            .values = launch.values.raw(),
                            .shared_by = launch.shared_by,
                            .picked = static_cast<const std::int64_t*>(launch.picked.raw()),
                            .shift = static_cast<const float*>(launch.added.shift.raw()),
                            .residual = launch.added.residual.raw(),
                            .output = launch.output.raw(),
                            .source = static_cast<std::int64_t*>(launch.source.raw()),
                            .channels = static_cast<std::int32_t>(channels),
                            .heads = static_cast<std::int32_t>(heads),
                            .averages = reduction == EntryReduction::mean,
                            .sign = reduction == EntryReduction::min ? -1.0F : 1.0F};
  const bool has_parts = pattern.long_rows.counts != nullptr;
  const std::int64_t partial = has_parts ? most_row_parts(pattern.entries()) * channels : 0;
  Buffer<float> values = runner.make<float>(partial);
  Buffer<std::int64_t> sources =
      runner.make<std::int64_t>(spec.operation == EntryOperation::most ? partial : 0);
  arguments.partial = {.value = values.data(), .source = sources.data()};
  const std::int64_t tile = std::int64_t{spec.schedule.team} * entry_chunk(spec.type);
  const std::int64_t layers = rounded_up(channels, tile);
  const std::int64_t multiprocessors = multiprocessors_of(runner.stream());
  arguments.units = std::max(teams.units, 1);
  arguments.part_teams =
      has_parts ? static_cast<std::int32_t>(std::min(most_row_parts(pattern.entries()),
                                                     multiprocessors * teams.part_teams))
                : 0;
  if (has_parts && teams.ways > 0)
    arguments.arrived = arrival_counters(pattern, layers, runner.stream());
  arguments.most_parts = static_cast<std::int32_t>(most_row_parts(pattern.entries()));
  runner.run(
      {&source_of(spec), kGatherReduceKernel},
      team_each(arguments.part_teams + runs_of(pattern, arguments.units), layers, spec.schedule),
      arguments);
  if (!has_parts || arguments.arrived != nullptr) return;
  const std::int64_t rows = most_long_rows(pattern.entries());
  runner.run({&source_of(spec), kFinishLongRowsKernel},
             {.blocks = std::min(rounded_up(rows * channels, kEntryThreads),
                                 multiprocessors * kFinishBlocks),
              .threads = kEntryThreads},
             arguments);
}

void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch,
                     const TeamSchedule& teams) {
  const std::int64_t channels = launch.left.extent(1), heads = launch.output.extent(1);
  if (launch.output.elements() == 0) return;
  PUMICE_ENSURES(channels % heads == 0, channels, " channels of ", heads, " heads");
  if (channels == 0) return fill_async(launch.output, 0, runner.stream());
  const ElementType type = storage_element(launch.left.dtype());
  const EdgeMapSpec spec = edge_dot_spec(type, channels / heads, launch.picked.defined());
  launch_edge_dot(runner, launch, planned(spec, channels / heads, teams));
}

void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch,
                     const EdgeMapSpec& spec) {
  const std::int64_t channels = launch.left.extent(1), heads = launch.output.extent(1);
  runner.run({&source_of(spec), kEdgeMapKernel}, warps_of_windows(launch.pattern, heads),
             EdgeArguments{.pattern = pattern_ref(launch.pattern),
                           .left = launch.left.raw(),
                           .right = launch.right.raw(),
                           .picked = static_cast<const std::int64_t*>(launch.picked.raw()),
                           .output = launch.output.raw(),
                           .channels = static_cast<std::int32_t>(channels),
                           .heads = static_cast<std::int32_t>(heads),
                           .head_channels = static_cast<std::int32_t>(channels / heads),
                           .averages = launch.averages});
}

void launch_edge_scores(jit::KernelRunner& runner, const EdgeMapArguments& arguments,
                        const TeamSchedule& teams) {
  const std::int64_t channels = arguments.left.extent(1), heads = arguments.output.extent(1);
  if (arguments.output.elements() == 0) return;
  if (channels == 0) return fill_async(arguments.output, 0, runner.stream());
  const EdgeMapSpec spec = planned(edge_scores_spec(storage_element(arguments.left.dtype()),
                                                    channels / heads, arguments.entry.defined()),
                                   channels / heads, teams);
  runner.run({&source_of(spec), kEdgeMapKernel}, warps_of_windows(arguments.pattern, heads),
             EdgeArguments{.pattern = pattern_ref(arguments.pattern),
                           .left = arguments.left.raw(),
                           .right = arguments.right.raw(),
                           .attention = arguments.attention.raw(),
                           .entry = arguments.entry.raw(),
                           .output = arguments.output.raw(),
                           .channels = static_cast<std::int32_t>(channels),
                           .heads = static_cast<std::int32_t>(heads),
                           .head_channels = static_cast<std::int32_t>(channels / heads),
                           .slope = static_cast<float>(arguments.negative_slope)});
}

AttentionShares launch_score_gradient(jit::KernelRunner& runner,
                                      const ScoreGradientArguments& arguments) {
  const std::int64_t channels = arguments.own.extent(1), heads = arguments.grad.extent(1);
  AttentionShares shares;
  const CsrView& pattern = arguments.pattern;
  if (pattern.rows == 0 || channels == 0) return shares;
  const ElementType type = storage_element(arguments.own.dtype());
  const bool attention = arguments.grad_attention.defined();
  const bool has_entries = arguments.entry.defined();
  ScoreGradientSpec spec{.type = type,
                         .entries = has_entries,
                         .attention = attention,
                         .whole_heads = heads == 1 || channels / heads % entry_chunk(type) == 0,
                         .schedule = score_gradient_schedule(type, channels, has_entries)};
  spec.ways = ways_of_row(pattern, spec.schedule);
  const std::int64_t tile = std::int64_t{spec.schedule.team} * entry_chunk(type);
  jit::LaunchShape shape =
      team_each(most_items(pattern) * spec.ways, rounded_up(channels, tile), spec.schedule);
  ScoreArguments given{.pattern = pattern_ref(pattern),
                       .own = arguments.own.raw(),
                       .other = arguments.other.raw(),
                       .entry = arguments.entry.raw(),
                       .attention = arguments.attention.raw(),
                       .grad = arguments.grad.raw(),
                       .output = arguments.output.raw(),
                       .grad_entry = arguments.grad_entry.raw(),
                       .channels = static_cast<std::int32_t>(channels),
                       .heads = static_cast<std::int32_t>(heads),
                       .slope = static_cast<float>(arguments.negative_slope)};
  if (attention) {
    shape.blocks = std::min(shape.blocks, multiprocessors_of(runner.stream()) * kShareBlocks);
    shares.rows = shape.blocks * kEntryThreads / (spec.schedule.team * spec.ways);
    shares.value = runner.make<float>(shares.rows * channels);
    given.share = shares.value.data();
  }
  const bool has_parts = pattern.long_rows.counts != nullptr;
  Buffer<float> partial =
      runner.make<float>(has_parts ? most_row_parts(pattern.entries()) * channels : 0);
  given.partial = partial.data();
  runner.run({&source_of(spec), kScoreGradientKernel}, shape, given);
  if (has_parts) {
    const std::int64_t items = most_long_rows(pattern.entries()) * channels;
    runner.run({&source_of(spec), kFinishScoresKernel},
               {.blocks = std::min(rounded_up(items, kEntryThreads),
                                   multiprocessors_of(runner.stream()) * kFinishBlocks),
                .threads = kEntryThreads},
               given);
  }
  return shares;
}

}   // namespace pumice::cuda
