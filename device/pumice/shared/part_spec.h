// What kernels over the parts of a pattern are specialised on, and what they are launched with.
//
//   GatherParts: GatherReduce over pieces of lines instead of rows. Lines of a part are as wide as
//   each other, so that no bounds are read; a piece that is all of its row writes the row, others
//   write sums that finish_shared_rows adds up in their order.
//
//   DotParts: a team takes the same items, and a number for each entry comes out.
#pragma once

#include <pumice/shared/entry_arguments.h>
#include <pumice/shared/entry_spec.h>
#include <pumice/shared/part_table.h>

namespace pumice {

struct GatherPartsSpec {
  GatherReduceSpec reduce{};   // neither `picked` nor `shared`: gradients go over the pattern
};

struct DotPartsSpec {
  ElementType type = ElementType::f32;
  EntrySchedule schedule{};
};

struct GatherPartsArguments {
  GatherArguments gather;   // whose pattern is that of the rows; no long ones
  PartTableRef table;
};

struct DotPartsArguments {
  PartTableRef table;
  const void* left = nullptr;    // [rows, channels]
  const void* right = nullptr;   // [columns, channels]
  void* output = nullptr;        // [entries, heads], by the entries' numbers
  int32_t channels = 0;
  int32_t heads = 1;
};

/// As entry_blocks of GatherReduce, but where a thread has more to remember: which of equals is
/// the first in the pattern is asked for too.
PUMICE_SHARED constexpr int part_blocks(const GatherPartsSpec& spec) {
  return entry_blocks(spec.reduce);
}
PUMICE_SHARED constexpr int part_blocks(const DotPartsSpec&) {
  return 8;
}

PUMICE_SHARED constexpr const char* why_invalid(const GatherPartsSpec& spec) {
  if (spec.reduce.operation == EntryOperation::picked || spec.reduce.shared)
    return "a gradient over parts";
  if (spec.reduce.schedule.ways != 0) return "warps over parts";
  return why_invalid(spec.reduce);
}
PUMICE_SHARED constexpr const char* why_invalid(const DotPartsSpec& spec) {
  if (spec.schedule.chunks > 1) return "products over parts of more than a chunk";
  if (spec.schedule.ways != 0) return "warps over parts";
  return why_invalid(spec.type, spec.schedule);
}

PUMICE_SHARED constexpr uint64_t fingerprint(const GatherPartsSpec& spec) {
  return fingerprint(spec.reduce);
}
PUMICE_SHARED constexpr uint64_t fingerprint(const DotPartsSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.type), spec.schedule.team,
                            spec.schedule.chunks, spec.schedule.access, spec.schedule.ahead};
  return fingerprint_of(fields);
}

PUMICE_SHARED constexpr bool operator==(const GatherPartsSpec& a, const GatherPartsSpec& b) {
  return a.reduce == b.reduce;
}
PUMICE_SHARED constexpr bool operator==(const DotPartsSpec& a, const DotPartsSpec& b) {
  return a.type == b.type && a.schedule == b.schedule;
}

}   // namespace pumice
