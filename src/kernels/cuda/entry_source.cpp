// Prints a specification as C++, with assertions that both compilers see the same one.
#include "kernels/cuda/entry_source.hpp"

#include <fmt/format.h>

#include <pumice/shared/entry_arguments.h>

#include "kernels/cuda/spec_text.hpp"
#include "plan/spec_names.hpp"

namespace pumice::cuda {
namespace {

const char* name_of(EntryOperation operation) {
  switch (operation) {
    case EntryOperation::sum: return "sum";
    case EntryOperation::most: return "most";
    case EntryOperation::picked: return "picked";
  }
  return "?";
}

const char* name_of(EdgeOperation operation) {
  switch (operation) {
    case EdgeOperation::dot: return "dot";
    case EdgeOperation::leaky: return "leaky";
  }
  return "?";
}

template <class Spec> void check(const Spec& spec) {
  check_spec(spec, [](const Spec& of) { return entry_name(of); });
}

}   // namespace

std::string name_of(const EntrySchedule& schedule) {
  const std::string of_team =
      fmt::format("t{}x{}a{}n{}", schedule.team, schedule.chunks, schedule.access, schedule.ahead);
  return schedule.ways == 0 ? of_team : fmt::format("w{}{}", schedule.ways, of_team);
}

std::string text_of(const EntrySchedule& schedule) {
  return fmt::format("{{.team = {}, .chunks = {}, .access = {}, .ahead = {}, .ways = {}}}",
                     schedule.team, schedule.chunks, schedule.access, schedule.ahead,
                     schedule.ways);
}

std::string text_of(const GatherReduceSpec& spec) {
  return fmt::format(
      "{{\n    .type = pumice::ElementType::{}, .operation = pumice::EntryOperation::{},\n"
      "    .weighted = {}, .headed = {}, .whole_heads = {},\n"
      "    .numbered = {}, .shared = {}, .added = {}, .schedule = {}}}",
      name_of(spec.type), name_of(spec.operation), spec.weighted, spec.headed, spec.whole_heads,
      spec.numbered, spec.shared, spec.added, text_of(spec.schedule));
}

std::string entry_name(const GatherReduceSpec& spec) {
  return fmt::format("gather_reduce_{}_{}{}{}{}{}_{}", name_of(spec.operation), name_of(spec.type),
                     spec.whole_heads ? "_by_whole_head"
                     : spec.headed    ? "_by_head"
                     : spec.weighted  ? "_weighted"
                                      : "",
                     spec.numbered ? "_numbered" : "", spec.shared ? "_shared" : "",
                     spec.added ? "_added" : "", name_of(spec.schedule));
}

std::string entry_name(const EdgeMapSpec& spec) {
  return fmt::format("edge_{}_{}{}{}{}_{}w{}", name_of(spec.operation), name_of(spec.type),
                     spec.picked ? "_picked" : "", spec.entries ? "_entries" : "",
                     spec.wide ? "_wide" : "", name_of(spec.schedule), spec.warps);
}

std::string entry_name(const ScoreGradientSpec& spec) {
  return fmt::format("score_gradient_{}{}{}{}_{}w{}", name_of(spec.type),
                     spec.entries ? "_entries" : "", spec.attention ? "_attention" : "",
                     spec.whole_heads ? "_by_whole_head" : "_by_head", name_of(spec.schedule),
                     spec.ways);
}

std::string entry_source(const GatherReduceSpec& spec) {
  check(spec);
  const bool by_warps = spec.schedule.ways > 0;
  const SpecText text{.header = by_warps ? "gather_warp" : "gather_reduce",
                      .type = "GatherReduceSpec",
                      .value = text_of(spec),
                      .fingerprint = fingerprint(spec),
                      .arguments = "GatherArguments",
                      .argument_bytes = sizeof(GatherArguments)};
  return text.head() +
         text.kernel(kGatherReduceKernel, kEntryThreads, entry_blocks(spec),
                     by_warps ? "gather_by_warps" : "gather_reduce") +
         text.kernel(kFinishLongRowsKernel, kEntryThreads, entry_blocks(spec));
}

std::string entry_source(const EdgeMapSpec& spec) {
  check(spec);
  const SpecText text{
      .header = "edge_map",
      .type = "EdgeMapSpec",
      .value = fmt::format(
          "{{\n    .type = pumice::ElementType::{}, .operation = pumice::EdgeOperation::{},\n"
          "    .picked = {}, .entries = {},\n"
          "    .wide = {}, .warps = {}, .schedule = {}}}",
          name_of(spec.type), name_of(spec.operation), spec.picked, spec.entries, spec.wide,
          spec.warps, text_of(spec.schedule)),
      .fingerprint = fingerprint(spec),
      .arguments = "EdgeArguments",
      .argument_bytes = sizeof(EdgeArguments)};
  return text.head() + text.kernel(kEdgeMapKernel, 32 * kEdgeBlockWarps, entry_blocks(spec));
}

std::string entry_source(const ScoreGradientSpec& spec) {
  check(spec);
  const SpecText text{
      .header = "score_gradient",
      .type = "ScoreGradientSpec",
      .value =
          fmt::format("{{\n    .type = pumice::ElementType::{}, .entries = {}, .attention = {},\n"
                      "    .whole_heads = {}, .ways = {}, .schedule = {}}}",
                      name_of(spec.type), spec.entries, spec.attention, spec.whole_heads, spec.ways,
                      text_of(spec.schedule)),
      .fingerprint = fingerprint(spec),
      .arguments = "ScoreArguments",
      .argument_bytes = sizeof(ScoreArguments)};
  return text.head() + text.kernel(kScoreGradientKernel, kEntryThreads, entry_blocks(spec)) +
         text.kernel(kFinishScoresKernel, kEntryThreads, entry_blocks(spec));
}

}   // namespace pumice::cuda
