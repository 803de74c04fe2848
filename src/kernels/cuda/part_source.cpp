// Prints a specification as C++, with assertions that both compilers see the same one.
#include "kernels/cuda/part_source.hpp"

#include <fmt/format.h>

#include "kernels/cuda/entry_source.hpp"
#include "kernels/cuda/spec_text.hpp"
#include "plan/spec_names.hpp"

namespace pumice::cuda {
namespace {

template <class Spec> void check(const Spec& spec) {
  check_spec(spec, [](const Spec& of) { return part_name(of); });
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
  const SpecText text{.header = "gather_parts",
                      .type = "GatherPartsSpec",
                      .value = fmt::format("{{.reduce = {}}}", text_of(spec.reduce)),
                      .fingerprint = fingerprint(spec),
                      .arguments = "GatherPartsArguments",
                      .argument_bytes = sizeof(GatherPartsArguments)};
  return text.head() + text.kernel(kGatherPartsKernel, kEntryThreads, part_blocks(spec)) +
         text.kernel(kFinishSharedRowsKernel, kEntryThreads, part_blocks(spec));
}

std::string part_source(const DotPartsSpec& spec) {
  check(spec);
  const SpecText text{
      .header = "dot_parts",
      .type = "DotPartsSpec",
      .value = fmt::format("{{\n    .type = pumice::ElementType::{}, .schedule = {}}}",
                           name_of(spec.type), text_of(spec.schedule)),
      .fingerprint = fingerprint(spec),
      .arguments = "DotPartsArguments",
      .argument_bytes = sizeof(DotPartsArguments)};
  return text.head() + text.kernel(kDotPartsKernel, kEntryThreads, part_blocks(spec));
}

}   // namespace pumice::cuda
