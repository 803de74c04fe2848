// Picks the specification and hands the arguments over.
#include "kernels/cuda/entry_launch.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include <pumice/shared/entry_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "graphs/cuda/balance.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a multiprocessor that sum parts of long rows; they walk on.
constexpr std::int64_t kFinishBlocks = 8;
/// Teams of a multiprocessor that take parts of long rows; they walk on.
constexpr std::int64_t kPartTeams = 32;
/// What decides how long runs are: starting one costs as much as so many units of a multiprocessor
/// wait for the last one. Of 0.2, 1.3 and 11.4 million rows and entries 2 to 4, 8 and 16 to 32
/// units were the fastest on an H100, for 32 to 512 channels alike.
constexpr std::int64_t kUnitsOfStart = 32;
constexpr std::int64_t kMostUnits = 64;
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
  return {.blocks = rounded_up(items * schedule.team, kEntryThreads),
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

/// How many units a run has: the longer, the fewer are started; the shorter, the less the last one
/// is waited for. Best is the root of what there is.
std::int32_t units_of_run(const CsrView& pattern, std::int64_t multiprocessors) {
  const auto units = static_cast<double>(work_units(pattern.rows, pattern.entries()));
  const double best = std::sqrt(units / static_cast<double>(kUnitsOfStart * multiprocessors));
  return static_cast<std::int32_t>(
      std::clamp<std::int64_t>(static_cast<std::int64_t>(best), 1, kMostUnits));
}

/// The spec with what follows from its schedule, for heads of so many channels.
EdgeMapSpec registers_for(EdgeMapSpec spec, std::int64_t channels) {
  const EntrySchedule& schedule = spec.schedule;
  spec.schedule.ahead = std::min(schedule.ahead, schedule.team);
  spec.wide = channels > std::int64_t{schedule.team} * schedule.chunks * entry_chunk(spec.type);
  const bool is_dot = spec.operation == EdgeOperation::dot;
  const bool is_light = is_dot && schedule.chunks == 1 && !spec.wide;
  spec.warps = spec.picked                                    ? 20
               : schedule.ahead > 4 || (spec.wide && !is_dot) ? 24
               : is_light                                     ? 40
                                                              : 32;
  return spec;
}

/// A warp for each window of entries.
jit::LaunchShape warps_of_windows(const CsrView& pattern, std::int64_t heads) {
  const std::int64_t windows = rounded_up(pattern.rows + pattern.entries(), kWarpLanes);
  return {.blocks = rounded_up(windows, kEdgeBlockWarps),
          .blocks_y = static_cast<std::int32_t>(heads),
          .threads = kWarpLanes * kEdgeBlockWarps};
}

}   // namespace

EntrySchedule entry_schedule(ElementType type, std::int64_t channels) {
  const auto lanes = static_cast<std::uint64_t>(
      std::max<std::int64_t>(rounded_up(channels, entry_chunk(type)), 1));
  const std::int64_t bytes = channels * element_bytes(type);
  std::int32_t access = 16;
  while (bytes % access != 0)
    access /= 2;
  return {.team = static_cast<std::int32_t>(std::min<std::uint64_t>(std::bit_ceil(lanes), 32)),
          .access = access,
          .ahead = access < 16 ? 2 : 4};
}

EdgeMapSpec edge_dot_spec(ElementType type, std::int64_t channels, bool picked) {
  EdgeMapSpec spec{.type = type, .picked = picked, .schedule = entry_schedule(type, channels)};
  EntrySchedule& schedule = spec.schedule;
  if (channels > kWarpLanes * entry_chunk(type)) schedule.chunks = schedule.ahead = 2;
  // Two entries on their way take 0.94 of the time of four on an H100 in f32 with 32 and 64
  // channels, and more with 128 and in f16.
  if (element_bytes(type) == 4 && schedule.team <= kWarpLanes / 2) schedule.ahead = 2;
  return registers_for(spec, channels);
}

EdgeMapSpec edge_scores_spec(ElementType type, std::int64_t channels, bool has_entries) {
  EdgeMapSpec spec{.type = type,
                   .operation = EdgeOperation::leaky,
                   .entries = has_entries,
                   .schedule = entry_schedule(type, channels)};
  if (has_entries) spec.schedule.ahead = 2;
  return registers_for(spec, channels);
}

EntrySchedule score_gradient_schedule(ElementType type, std::int64_t channels, bool has_entries) {
  EntrySchedule schedule = entry_schedule(type, channels);
  const int of_entry = entry_chunk(type) * (has_entries ? 2 : 1);
  schedule.ahead = std::max((schedule.access < 16 ? 8 : 16) / of_entry, 1);
  return schedule;
}

void launch_gather_reduce(jit::KernelRunner& runner, const GatherReduceLaunch& launch,
                          EntryReduction reduction) {
  const std::int64_t channels = launch.features.extent(1);
  if (launch.pattern.rows == 0 || channels == 0) return;
  const std::int64_t heads = launch.values.defined() ? launch.values.extent(1) : 1;
  const ElementType type = storage_element(launch.features.dtype());
  const GatherReduceSpec spec{.type = type,
                              .operation = operation_of(launch, reduction),
                              .weighted = launch.values.defined(),
                              .headed = heads > 1,
                              .whole_heads = heads > 1 && channels / heads % entry_chunk(type) == 0,
                              .numbered = !launch.pattern.entry.empty(),
                              .shared = launch.shared_by != nullptr,
                              .schedule = entry_schedule(type, channels)};
  GatherArguments arguments{.pattern = pattern_ref(launch.pattern),
                            .features = launch.features.raw(),
                            .values = launch.values.raw(),
                            .shared_by = launch.shared_by,
                            .picked = static_cast<const std::int64_t*>(launch.picked.raw()),
                            .output = launch.output.raw(),
                            .source = static_cast<std::int64_t*>(launch.source.raw()),
                            .channels = static_cast<std::int32_t>(channels),
                            .heads = static_cast<std::int32_t>(heads),
                            .averages = reduction == EntryReduction::mean,
                            .sign = reduction == EntryReduction::min ? -1.0F : 1.0F};
  const bool has_parts = launch.pattern.long_rows.counts != nullptr;
  const std::int64_t partial = has_parts ? most_row_parts(launch.pattern.entries()) * channels : 0;
  Buffer<float> values = runner.make<float>(partial);
  Buffer<std::int64_t> sources =
      runner.make<std::int64_t>(spec.operation == EntryOperation::most ? partial : 0);
  arguments.partial = {.value = values.data(), .source = sources.data()};
  const std::int64_t tile = std::int64_t{spec.schedule.team} * entry_chunk(spec.type);
  const std::int64_t layers = rounded_up(channels, tile);
  const std::int64_t multiprocessors = multiprocessors_of(runner.stream());
  arguments.units = units_of_run(launch.pattern, multiprocessors);
  arguments.part_teams =
      has_parts ? static_cast<std::int32_t>(std::min(most_row_parts(launch.pattern.entries()),
                                                     multiprocessors * kPartTeams))
                : 0;
  runner.run({&source_of(spec), kGatherReduceKernel},
             team_each(arguments.part_teams + runs_of(launch.pattern, arguments.units), layers,
                       spec.schedule),
             arguments);
  if (!has_parts) return;
  const std::int64_t rows = most_long_rows(launch.pattern.entries());
  runner.run({&source_of(spec), kFinishLongRowsKernel},
             {.blocks = std::min(rounded_up(rows * channels, kEntryThreads),
                                 multiprocessors * kFinishBlocks),
              .threads = kEntryThreads},
             arguments);
}

void launch_edge_dot(jit::KernelRunner& runner, const EdgeDotLaunch& launch) {
  const std::int64_t channels = launch.left.extent(1), heads = launch.output.extent(1);
  if (launch.output.elements() == 0) return;
  PUMICE_ENSURES(channels % heads == 0, channels, " channels of ", heads, " heads");
  if (channels == 0) return fill_async(launch.output, 0, runner.stream());
  launch_edge_dot(runner, launch,
                  edge_dot_spec(storage_element(launch.left.dtype()), channels / heads,
                                launch.picked.defined()));
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

void launch_edge_scores(jit::KernelRunner& runner, const EdgeMapArguments& arguments) {
  const std::int64_t channels = arguments.left.extent(1), heads = arguments.output.extent(1);
  if (arguments.output.elements() == 0) return;
  if (channels == 0) return fill_async(arguments.output, 0, runner.stream());
  const EdgeMapSpec spec = edge_scores_spec(storage_element(arguments.left.dtype()),
                                            channels / heads, arguments.entry.defined());
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
