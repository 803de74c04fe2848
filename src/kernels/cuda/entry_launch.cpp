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

EntrySchedule edge_schedule(ElementType type, std::int64_t channels) {
  EntrySchedule schedule = entry_schedule(type, channels);
  schedule.chunks = channels > 32 * entry_chunk(type) ? 2 : 1;
  if (schedule.chunks * entry_chunk(type) > 8) schedule.ahead = 2;
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
  const std::int64_t tile =
      std::int64_t{spec.schedule.team} * spec.schedule.chunks * entry_chunk(spec.type);
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
  const ElementType type = storage_element(launch.left.dtype());
  const EdgeMapSpec spec{.type = type,
                         .picked = launch.picked.defined(),
                         .schedule = edge_schedule(type, channels / heads)};
  runner.run({&source_of(spec), kEdgeDotKernel},
             team_each(most_items(launch.pattern), heads, spec.schedule),
             EdgeArguments{.pattern = pattern_ref(launch.pattern),
                           .left = launch.left.raw(),
                           .right = launch.right.raw(),
                           .picked = static_cast<const std::int64_t*>(launch.picked.raw()),
                           .output = launch.output.raw(),
                           .channels = static_cast<std::int32_t>(channels),
                           .heads = static_cast<std::int32_t>(heads),
                           .averages = launch.averages});
}

}   // namespace pumice::cuda
