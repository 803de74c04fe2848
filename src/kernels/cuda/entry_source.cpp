// Prints a specification as C++, with assertions that both compilers see the same one.
#include "kernels/cuda/entry_source.hpp"

#include <fmt/format.h>

#include <pumice/shared/entry_arguments.h>
#include <pumice/core/error.hpp>

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
  const char* why = why_invalid(spec);
  PUMICE_ENSURES(why == nullptr, entry_name(spec), ": ", why == nullptr ? "" : why);
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
  return fmt::format(
      "#include <pumice/skeleton/{15}.h>\n"
      "inline constexpr pumice::GatherReduceSpec kSpec{{\n"
      "    .type = pumice::ElementType::{0}, .operation = pumice::EntryOperation::{1},\n"
      "    .weighted = {2}, .headed = {3}, .whole_heads = {11},\n"
      "    .numbered = {12}, .shared = {13}, .added = {14}, .schedule = {4}}};\n"
      "static_assert(pumice::fingerprint(kSpec) == {5}u);\n"
      "static_assert(sizeof(pumice::GatherArguments) == {6});\n"
      "PUMICE_KERNEL void __launch_bounds__({7}, {10})\n"
      "{8}(PUMICE_ARGUMENT(pumice::GatherArguments) arguments) {{\n"
      "  pumice::{16}<kSpec>(arguments);\n"
      "}}\n"
      "PUMICE_KERNEL void __launch_bounds__({7}, {10})\n"
      "{9}(PUMICE_ARGUMENT(pumice::GatherArguments) arguments) {{\n"
      "  pumice::finish_long_rows<kSpec>(arguments);\n"
      "}}\n",
      name_of(spec.type), name_of(spec.operation), spec.weighted, spec.headed,
      text_of(spec.schedule), fingerprint(spec), sizeof(GatherArguments), kEntryThreads,
      kGatherReduceKernel, kFinishLongRowsKernel, entry_blocks(spec), spec.whole_heads,
      spec.numbered, spec.shared, spec.added, by_warps ? "gather_warp" : "gather_reduce",
      by_warps ? "gather_by_warps" : "gather_reduce");
}

std::string entry_source(const EdgeMapSpec& spec) {
  check(spec);
  return fmt::format(
      "#include <pumice/skeleton/edge_map.h>\n"
      "inline constexpr pumice::EdgeMapSpec kSpec{{\n"
      "    .type = pumice::ElementType::{0}, .operation = pumice::EdgeOperation::{8},\n"
      "    .picked = {1}, .entries = {9},\n"
      "    .wide = {10}, .warps = {11}, .schedule = {2}}};\n"
      "static_assert(pumice::fingerprint(kSpec) == {3}u);\n"
      "static_assert(sizeof(pumice::EdgeArguments) == {4});\n"
      "PUMICE_KERNEL void __launch_bounds__({5}, {7})\n"
      "{6}(PUMICE_ARGUMENT(pumice::EdgeArguments) arguments) {{\n"
      "  pumice::edge_map<kSpec>(arguments);\n"
      "}}\n",
      name_of(spec.type), spec.picked, text_of(spec.schedule), fingerprint(spec),
      sizeof(EdgeArguments), 32 * kEdgeBlockWarps, kEdgeMapKernel, entry_blocks(spec),
      name_of(spec.operation), spec.entries, spec.wide, spec.warps);
}

std::string entry_source(const ScoreGradientSpec& spec) {
  check(spec);
  return fmt::format(
      "#include <pumice/skeleton/score_gradient.h>\n"
      "inline constexpr pumice::ScoreGradientSpec kSpec{{\n"
      "    .type = pumice::ElementType::{0}, .entries = {1}, .attention = {2},\n"
      "    .whole_heads = {3}, .ways = {11}, .schedule = {4}}};\n"
      "static_assert(pumice::fingerprint(kSpec) == {5}u);\n"
      "static_assert(sizeof(pumice::ScoreArguments) == {6});\n"
      "PUMICE_KERNEL void __launch_bounds__({7}, {10})\n"
      "{8}(PUMICE_ARGUMENT(pumice::ScoreArguments) arguments) {{\n"
      "  pumice::score_gradient<kSpec>(arguments);\n"
      "}}\n"
      "PUMICE_KERNEL void __launch_bounds__({7}, {10})\n"
      "{9}(PUMICE_ARGUMENT(pumice::ScoreArguments) arguments) {{\n"
      "  pumice::finish_scores<kSpec>(arguments);\n"
      "}}\n",
      name_of(spec.type), spec.entries, spec.attention, spec.whole_heads, text_of(spec.schedule),
      fingerprint(spec), sizeof(ScoreArguments), kEntryThreads, kScoreGradientKernel,
      kFinishScoresKernel, entry_blocks(spec), spec.ways);
}

}   // namespace pumice::cuda
