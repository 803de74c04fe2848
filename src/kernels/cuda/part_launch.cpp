// Picks the specification and hands the table over.
#include "kernels/cuda/part_launch.hpp"

#include <algorithm>

#include <pumice/core/copy.hpp>
#include <pumice/core/error.hpp>

#include "kernels/cuda/entry_launch.hpp"
#include "kernels/cuda/part_source.hpp"
#include "kernels/cuda/source_table.hpp"
#include "kernels/cuda/tile_launch.hpp"
#include "plan/cuda_architecture.hpp"

namespace pumice::cuda {
namespace {

/// Blocks of a multiprocessor that add up partial sums; they walk on.
constexpr std::int64_t kFinishBlocks = 8;

template <class Spec> const jit::Source& source_of(const Spec& spec) {
  static SourceTable<Spec, SpecHash<Spec>> sources;
  return sources.get(spec, [](const Spec& wanted) {
    return jit::Source{.name = part_name(wanted), .text = part_source(wanted)};
  });
}

std::int64_t rounded_up(std::int64_t items, std::int64_t of) {
  return (items + of - 1) / of;
}

jit::LaunchShape team_each(std::int64_t items, std::int64_t layers, const EntrySchedule& schedule) {
  return {.blocks = rounded_up(items * schedule.team, kEntryThreads),
          .blocks_y = static_cast<std::int32_t>(layers),
          .threads = kEntryThreads};
}

EntrySchedule schedule_of(ElementType type, std::int64_t channels, const TeamSchedule* teams) {
  return teams == nullptr ? entry_schedule(type, channels)
                          : kernel_schedule(type, channels, *teams);
}

GatherPartsSpec spec_of(const PartReduceArguments& arguments, bool picks, bool numbered,
                        const TeamSchedule* teams) {
  const std::int64_t channels = arguments.features.extent(1);
  const std::int64_t heads = arguments.values.defined() ? arguments.values.extent(1) : 1;
  const ElementType type = storage_element(arguments.features.dtype());
  return {.reduce = {.type = type,
                     .operation = picks ? EntryOperation::most : EntryOperation::sum,
                     .weighted = arguments.values.defined(),
                     .headed = heads > 1,
                     .whole_heads = heads > 1 && channels / heads % entry_chunk(type) == 0,
                     .numbered = numbered,
                     .schedule = schedule_of(type, channels, teams)}};
}

}   // namespace

void launch_gather_parts(jit::KernelRunner& runner, const PartReduceArguments& arguments,
                         EntryReduction reduction, const TeamSchedule* teams) {
  const std::int64_t channels = arguments.features.extent(1);
  const bool picks = reduction == EntryReduction::max || reduction == EntryReduction::min;
  if (arguments.parts.rows() == 0 || channels == 0) return;
  if (arguments.parts.entries() == 0) {   // there may be no row of features to read for padding
    fill_async(arguments.output, 0, runner.stream());
    if (picks) fill_async(arguments.source, -1, runner.stream());
    return;
  }
  const PartTableRef table = arguments.parts.table();
  const GatherPartsSpec spec = spec_of(arguments, picks, table.number != nullptr, teams);
  GatherPartsArguments given{
      .gather = {.pattern = {},
                 .features = arguments.features.raw(),
                 .values = arguments.values.raw(),
                 .output = arguments.output.raw(),
                 .source = static_cast<std::int64_t*>(arguments.source.raw()),
                 .channels = static_cast<std::int32_t>(channels),
                 .heads = arguments.values.defined()
                              ? static_cast<std::int32_t>(arguments.values.extent(1))
                              : 1,
                 .averages = reduction == EntryReduction::mean,
                 .sign = reduction == EntryReduction::min ? -1.0F : 1.0F},
      .table = table};
  Buffer<float> values = runner.make<float>(table.partials * channels);
  Buffer<std::int64_t> sources = runner.make<std::int64_t>(picks ? table.partials * channels : 0);
  given.gather.partial = {.value = values.data(), .source = sources.data()};
  const std::int64_t tile = std::int64_t{spec.reduce.schedule.team} * entry_chunk(spec.reduce.type);
  runner.run({&source_of(spec), kGatherPartsKernel},
             team_each(table.items, rounded_up(channels, tile), spec.reduce.schedule), given);
  if (table.shared_rows == 0) return;
  const std::int64_t most = multiprocessors_of(runner.stream()) * kFinishBlocks;
  runner.run({&source_of(spec), kFinishSharedRowsKernel},
             {.blocks = std::min(rounded_up(table.shared_rows * channels, kEntryThreads), most),
              .threads = kEntryThreads},
             given);
}

void launch_dot_parts(jit::KernelRunner& runner, const PartDotArguments& arguments,
                      const TeamSchedule* teams) {
  const std::int64_t channels = arguments.left.extent(1), heads = arguments.output.extent(1);
  if (arguments.output.elements() == 0) return;
  if (channels == 0) return fill_async(arguments.output, 0, runner.stream());
  const ElementType type = storage_element(arguments.left.dtype());
  const DotPartsSpec spec{.type = type, .schedule = schedule_of(type, channels / heads, teams)};
  const PartTableRef table = arguments.parts.table();
  runner.run({&source_of(spec), kDotPartsKernel}, team_each(table.slot_items, heads, spec.schedule),
             DotPartsArguments{.table = table,
                               .left = arguments.left.raw(),
                               .right = arguments.right.raw(),
                               .output = arguments.output.raw(),
                               .channels = static_cast<std::int32_t>(channels),
                               .heads = static_cast<std::int32_t>(heads)});
}

}   // namespace pumice::cuda
