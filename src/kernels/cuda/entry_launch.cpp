// Picks the specification and hands the arguments over.
#include "kernels/cuda/entry_launch.hpp"

#include <algorithm>
#include <bit>

#include <pumice/shared/entry_arguments.h>
#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "graphs/cuda/long_rows.hpp"
#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a multiprocessor that sum parts of long rows; they walk on.
constexpr std::int64_t kFinishBlocks = 8;
/// Entries of an average row for each team that shares it.
constexpr std::int64_t kEntriesOfWay = 2;

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

/// `layers`: tiles of channels, or heads, along the second axis.
jit::LaunchShape team_each(std::int64_t items, std::int64_t layers, const EntrySchedule& schedule) {
  return {.blocks = rounded_up(items * schedule.team * schedule.ways, kEntryThreads),
          .blocks_y = static_cast<std::int32_t>(layers),
          .threads = kEntryThreads};
}

EntryOperation operation_of(const GatherReduceLaunch& launch, EntryReduction reduction) {
  if (launch.picked.defined()) return EntryOperation::picked;
  const bool most = reduction == EntryReduction::max || reduction == EntryReduction::min;
  return most ? EntryOperation::most : EntryOperation::sum;
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
          .chunks = static_cast<std::int32_t>(std::clamp<std::uint64_t>((lanes + 31) / 32, 1, 2)),
          .access = access};
}

EntrySchedule entry_schedule(ElementType type, std::int64_t channels, const CsrView& pattern) {
  EntrySchedule schedule = entry_schedule(type, channels);
  const std::int64_t mean = pattern.entries() / std::max<std::int64_t>(pattern.rows, 1);
  while (schedule.ways * schedule.team < 32 && schedule.ways * kEntriesOfWay <= mean)
    schedule.ways *= 2;
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
                              .schedule = entry_schedule(type, channels, launch.pattern)};
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
  runner.run({&source_of(spec), kGatherReduceKernel},
             team_each(most_items(launch.pattern), rounded_up(channels, tile), spec.schedule),
             arguments);
  if (!has_parts) return;
  const std::int64_t rows = most_long_rows(launch.pattern.entries());
  runner.run({&source_of(spec), kFinishLongRowsKernel},
             {.blocks = std::min(rounded_up(rows * channels, kEntryThreads),
                                 multiprocessors_of(runner.stream()) * kFinishBlocks),
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
                         .schedule = entry_schedule(type, channels / heads)};
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
