// What kernels over the entries of a sparse matrix are specialised on: plain values that the host
// prints as C++ and the device takes as template arguments.
//
//   GatherReduce: a team of threads takes rows that have about as many entries as those of other
//   teams, each thread some of the channels; or a warp does, whose teams share the entries of a row
//   and whose lanes read columns and weights of 32 entries at a time.
//
//       entries of a row        rows of features
//         ┌─ column 4 ─────────► ▬▬▬▬▬▬▬▬ ─┐
//     row ├─ column 9 ─────────► ▬▬▬▬▬▬▬▬ ─┼─► sum, or the most ─► row of the output
//         └─ column 4 ─────────► ▬▬▬▬▬▬▬▬ ─┘
//                                └┘ chunk: what one access moves
//
//   EdgeMap: a warp takes 32 rows and entries beside each other, a team of it an entry at a time,
//   multiplies the row on the left with that on the right and adds up over channels, a number for
//   each entry; or it adds the two and weighs what a leaky unit makes of the sum.
//
//   ScoreGradient: the way back of the latter, which computes those sums once more.
#pragma once

#include <pumice/shared/tile_spec.h>

namespace pumice {

/// Of a block, whose place is taken until its longest row is done: two warps.
inline constexpr int kEntryThreads = 64;

enum class EntryOperation : int32_t {
  sum,      // weight · feature, added up; mean is the sum over the number of entries
  most,     // the largest weight · feature of each channel, and which entry it is of
  picked,   // weight · feature, where the row that the entry names has picked the entry: the
            // gradient of `most`
};

enum class EdgeOperation : int32_t {
  dot,     // left · right
  leaky,   // attention · leaky(left + right)
};

/// How channels are shared out to a team.
struct EntrySchedule {
  int32_t team = 32;     // threads, a power of 2 up to 32
  int32_t chunks = 1;    // of a thread, `team` chunks apart: 2 in products of rows at the most
  int32_t access = 16;   // bytes that all rows are a multiple of, 2 to 16
  int32_t ahead = 4;     // entries whose rows are on their way at a time, 1 to 8
  int32_t ways = 0;      // of products of rows: teams of a warp, which takes rows together; 0: a
                         // team takes them by itself
};

struct GatherReduceSpec {
  ElementType type = ElementType::f32;
  EntryOperation operation = EntryOperation::sum;
  bool weighted = false;      // by values
  bool headed = false;        // a value for each head, of which there are several
  bool whole_heads = false;   // the channels of a chunk are of one head
  bool numbered = false;      // entries have numbers that are not their places
  bool shared = false;        // features are divided among the entries of the rows they are of
  bool added = false;         // sums are added to what is there: a bias, a row
  EntrySchedule schedule{};
};

/// Warps of a block of EdgeMap; 2 and 8 were as fast on an H100.
inline constexpr int32_t kEdgeBlockWarps = 4;

struct EdgeMapSpec {
  ElementType type = ElementType::f32;
  EdgeOperation operation = EdgeOperation::dot;
  bool picked = false;    // of dot: left counts where its row has picked the entry
  bool entries = false;   // of leaky: a row of the entry itself is added too
  bool wide = false;      // a head has more channels than a team takes at a time
  int32_t warps = 40;     // of a multiprocessor at least, which is how many registers a thread may
                          // have: 48 with 40 warps
  EntrySchedule schedule{};
};

/// Of EdgeOperation::leaky: what comes to the rows of a pattern, those on the left or, with the
/// transpose, those on the right.
struct ScoreGradientSpec {
  ElementType type = ElementType::f32;
  bool entries = false;       // rows of entries were added
  bool attention = false;     // its gradient too, and that of the rows of entries
  bool whole_heads = false;   // the channels of a chunk are of one head
  int32_t ways = 1;           // teams that share the entries of a row, a power of 2; of one warp
  EntrySchedule schedule{};
};

/// Blocks of a multiprocessor at least, which is how many registers a thread may have: 64 for sums
/// of f32, whose time is how many rows are on their way, 80 for those of 8 channels a thread, 128
/// for others and where the latter divide, which spilled 20 bytes in bf16. Of a warp: 64 with four
/// rows on their way, 72 where sums are added to what is there (64 spilled 8 bytes on sm_80), 80
/// with 8 channels a thread, 96 with more rows (80 spilled 8 bytes there in f32). Teams have 72
/// where two of weights, means of a transpose and sums to what is there meet: NVRTC 12.9 spilled up
/// to 44 bytes of 64 for sm_100.
PUMICE_SHARED constexpr int entry_blocks(const GatherReduceSpec& spec) {
  if (spec.operation != EntryOperation::sum || spec.headed) return 8;
  if (spec.schedule.ways > 0) {
    if (spec.shared) return 8;
    const bool is_f32 = element_bytes(spec.type) == 4;
    if (spec.schedule.ahead > 4) return 10;
    return !is_f32 ? 12 : spec.added ? 14 : 16;
  }
  if (element_bytes(spec.type) == 4) return spec.added + spec.weighted + spec.shared > 1 ? 14 : 16;
  return spec.shared ? 8 : 12;
}
PUMICE_SHARED constexpr int entry_blocks(const EdgeMapSpec& spec) {
  return spec.warps / kEdgeBlockWarps;
}
PUMICE_SHARED constexpr int entry_blocks(const ScoreGradientSpec&) {
  return 8;
}

/// Channels of a chunk: 16 bytes, in narrower accesses where rows are not aligned to that.
PUMICE_SHARED constexpr int32_t entry_chunk(ElementType type) {
  return 16 / element_bytes(type);
}

PUMICE_SHARED constexpr const char* why_invalid(ElementType type, const EntrySchedule& schedule) {
  if (type == ElementType::tf32) return "tf32 is no type of rows";
  if (schedule.team < 1 || schedule.team > 32 || (schedule.team & (schedule.team - 1)) != 0)
    return "team is no power of 2 up to 32";
  if (schedule.chunks < 1 || schedule.chunks > 2) return "chunks are not 1 or 2";
  if (schedule.ahead < 1 || schedule.ahead > 8) return "ahead is not 1 to 8";
  const int32_t access = schedule.access;
  if (access != 2 && access != 4 && access != 8 && access != 16) return "access is not 2 to 16";
  return access < element_bytes(type) ? "access is less than an element" : nullptr;
}
PUMICE_SHARED constexpr const char* why_invalid(const GatherReduceSpec& spec) {
  if (spec.headed && !spec.weighted) return "heads without values";
  if (spec.whole_heads && !spec.headed) return "whole heads without heads";
  if (spec.added && spec.operation != EntryOperation::sum) return "more is added than sums";
  if (spec.schedule.chunks > 1) return "rows gathered by more than a chunk";
  const EntrySchedule& schedule = spec.schedule;
  if (const char* why = why_invalid(spec.type, schedule)) return why;
  if (schedule.ways == 0) return nullptr;
  if (schedule.ways < 0 || schedule.ways * schedule.team != 32) return "ways of teams are no warp";
  if ((schedule.ahead & (schedule.ahead - 1)) != 0 || schedule.ways * schedule.ahead > 32)
    return "a warp has no power of 2 up to 32 rows on their way";
  if (spec.operation == EntryOperation::most && schedule.ways > 1) return "a choice by teams";
  const bool is_plain = spec.operation == EntryOperation::sum && !spec.headed && !spec.shared;
  return schedule.ahead > 4 && element_bytes(spec.type) == 2 && !is_plain
             ? "more rows on their way than registers hold"
             : nullptr;
}
PUMICE_SHARED constexpr const char* why_invalid(const EdgeMapSpec& spec) {
  if (spec.schedule.ways != 0) return "ways of a number for each entry";
  const bool leaky = spec.operation == EdgeOperation::leaky;
  if (leaky && spec.picked) return "a leaky sum of what was picked";
  if (!leaky && spec.entries) return "a product with rows of entries";
  if (leaky && spec.schedule.chunks > 1) return "a leaky sum of more than a chunk";
  const int32_t ahead = spec.schedule.ahead;
  if ((ahead & (ahead - 1)) != 0 || ahead > spec.schedule.team)
    return "ahead is no power of 2 up to the team";
  if (spec.warps < kEdgeBlockWarps || spec.warps > 64)
    return "warps are less than a block, or more than 64";
  return why_invalid(spec.type, spec.schedule);
}
PUMICE_SHARED constexpr const char* why_invalid(const ScoreGradientSpec& spec) {
  if (spec.schedule.ways != 0) return "ways of the schedule beside those of the gradient";
  const int32_t ways = spec.ways;
  if (ways < 1 || (ways & (ways - 1)) != 0 || ways * spec.schedule.team > 32)
    return "ways is no power of 2, or their teams are more than a warp";
  return spec.schedule.chunks > 1 ? "a leaky sum of more than a chunk"
                                  : why_invalid(spec.type, spec.schedule);
}

template <decltype(sizeof(0)) kCount>
PUMICE_SHARED constexpr uint64_t fingerprint_of(const int32_t (&fields)[kCount]) {
  uint64_t hash = 14695981039346656037u;
  for (const int32_t field : fields)
    hash = (hash ^ static_cast<uint32_t>(field)) * 1099511628211u;
  return hash;
}
PUMICE_SHARED constexpr uint64_t fingerprint(const GatherReduceSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.type),
                            static_cast<int32_t>(spec.operation),
                            spec.weighted ? 1 : 0,
                            spec.headed ? 1 : 0,
                            spec.whole_heads ? 1 : 0,
                            spec.numbered ? 1 : 0,
                            spec.shared ? 1 : 0,
                            spec.added ? 1 : 0,
                            spec.schedule.team,
                            spec.schedule.chunks,
                            spec.schedule.access,
                            spec.schedule.ahead,
                            spec.schedule.ways};
  return fingerprint_of(fields);
}
PUMICE_SHARED constexpr uint64_t fingerprint(const EdgeMapSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.type),
                            static_cast<int32_t>(spec.operation),
                            spec.picked ? 1 : 0,
                            spec.entries ? 1 : 0,
                            spec.wide ? 1 : 0,
                            spec.warps,
                            spec.schedule.team,
                            spec.schedule.chunks,
                            spec.schedule.access,
                            spec.schedule.ahead};
  return fingerprint_of(fields);
}
PUMICE_SHARED constexpr uint64_t fingerprint(const ScoreGradientSpec& spec) {
  const int32_t fields[] = {static_cast<int32_t>(spec.type),
                            spec.entries ? 1 : 0,
                            spec.attention ? 1 : 0,
                            spec.whole_heads ? 1 : 0,
                            spec.ways,
                            spec.schedule.team,
                            spec.schedule.access,
                            spec.schedule.ahead};
  return fingerprint_of(fields);
}

PUMICE_SHARED constexpr bool operator==(const EntrySchedule& a, const EntrySchedule& b) {
  return a.team == b.team && a.chunks == b.chunks && a.access == b.access && a.ahead == b.ahead &&
         a.ways == b.ways;
}
PUMICE_SHARED constexpr bool operator==(const GatherReduceSpec& a, const GatherReduceSpec& b) {
  return a.type == b.type && a.operation == b.operation && a.weighted == b.weighted &&
         a.headed == b.headed && a.whole_heads == b.whole_heads && a.numbered == b.numbered &&
         a.shared == b.shared && a.added == b.added && a.schedule == b.schedule;
}
PUMICE_SHARED constexpr bool operator==(const EdgeMapSpec& a, const EdgeMapSpec& b) {
  return a.type == b.type && a.operation == b.operation && a.picked == b.picked &&
         a.entries == b.entries && a.wide == b.wide && a.warps == b.warps &&
         a.schedule == b.schedule;
}
PUMICE_SHARED constexpr bool operator==(const ScoreGradientSpec& a, const ScoreGradientSpec& b) {
  return a.type == b.type && a.entries == b.entries && a.attention == b.attention &&
         a.whole_heads == b.whole_heads && a.ways == b.ways && a.schedule == b.schedule;
}

}   // namespace pumice
