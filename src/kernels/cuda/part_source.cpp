// Prints a specification as C++, with assertions that both compilers see the same one.
#include "kernels/cuda/part_source.hpp"

#include <fmt/format.h>

#include <pumice/core/error.hpp>

#include "kernels/cuda/entry_source.hpp"
#include "plan/spec_names.hpp"

namespace pumice::cuda {
namespace {

template <class Spec> void check(const Spec& spec) {
  const char* why = why_invalid(spec);
  PUMICE_ENSURES(why == nullptr, part_name(spec), ": ", why == nullptr ? "" : why);
}

}   // namespace

std::string part_name(const GatherPartsSpec& spec) {
  return "parts_" + entry_name(spec.reduce);
}

std::string part_name(const DotPartsSpec& spec) {
  return fmt::format("parts_dot_{}_{}", name_of(spec.type), name_of(spec.schedule));
}

std::string part_source(const GatherPartsSpec& spec) {
  check(spec);
  const GatherReduceSpec& reduce = spec.reduce;
  const char* const operation = reduce.operation == EntryOperation::most ? "most" : "sum";
  return fmt::format(
      "#include <pumice/skeleton/gather_parts.h>\n"
      "inline constexpr pumice::GatherPartsSpec kSpec{{.reduce = {{\n"
      "    .type = pumice::ElementType::{0}, .operation = pumice::EntryOperation::{1},\n"
      "    .weighted = {2}, .headed = {3}, .whole_heads = {4},\n"
      "    .numbered = {5}, .schedule = {6}}}}};\n"
      "static_assert(pumice::fingerprint(kSpec) == {7}u);\n"
      "static_assert(sizeof(pumice::GatherPartsArguments) == {8});\n"
      "PUMICE_KERNEL void __launch_bounds__({9}, {10})\n"
      "{11}(PUMICE_ARGUMENT(pumice::GatherPartsArguments) arguments) {{\n"
      "  pumice::gather_parts<kSpec>(arguments);\n"
      "}}\n"
      "PUMICE_KERNEL void __launch_bounds__({9}, {10})\n"
      "{12}(PUMICE_ARGUMENT(pumice::GatherPartsArguments) arguments) {{\n"
      "  pumice::finish_shared_rows<kSpec>(arguments);\n"
      "}}\n",
      name_of(reduce.type), operation, reduce.weighted, reduce.headed, reduce.whole_heads,
      reduce.numbered, text_of(reduce.schedule), fingerprint(spec), sizeof(GatherPartsArguments),
      kEntryThreads, part_blocks(spec), kGatherPartsKernel, kFinishSharedRowsKernel);
}

std::string part_source(const DotPartsSpec& spec) {
  check(spec);
  return fmt::format(
      "#include <pumice/skeleton/dot_parts.h>\n"
      "inline constexpr pumice::DotPartsSpec kSpec{{\n"
      "    .type = pumice::ElementType::{0}, .schedule = {1}}};\n"
      "static_assert(pumice::fingerprint(kSpec) == {2}u);\n"
      "static_assert(sizeof(pumice::DotPartsArguments) == {3});\n"
      "PUMICE_KERNEL void __launch_bounds__({4}, {5})\n"
      "{6}(PUMICE_ARGUMENT(pumice::DotPartsArguments) arguments) {{\n"
      "  pumice::dot_parts<kSpec>(arguments);\n"
      "}}\n",
      name_of(spec.type), text_of(spec.schedule), fingerprint(spec), sizeof(DotPartsArguments),
      kEntryThreads, part_blocks(spec), kDotPartsKernel);
}

}   // namespace pumice::cuda
