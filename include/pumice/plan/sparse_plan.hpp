// How a product of a sparse matrix is run: a value that the executor obeys. It is chosen
// (pumice/plan/choose_sparse.hpp), measured, written to a file or made by hand, and nothing behind
// it chooses again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace pumice {

/// What the pattern is cut into, once, and kept with it.
enum class SparseFormat : unsigned char {
  csr,   // nothing is cut: rows as they are
  ell,   // lines of one width
  hyb,   // column parts, and in each of them lines of widths 1, 2, 4, …
};

std::string_view name_of(SparseFormat format);

/// How rows are gone over on the CPU.
struct RangeSchedule {
  /// Channels of entries of a range of rows, which one thread takes: some 10 us.
  std::int64_t work = std::int64_t{1} << 16;
  /// Rows of features are read at random: they are asked for so many entries before they are
  /// needed, across the ends of rows; of parts within rows.
  std::int32_t ahead = 8;

  friend bool operator==(const RangeSchedule&, const RangeSchedule&) = default;
};

/// How rows are shared out to teams of threads on a device. What is compiled in: `team`, `chunks`,
/// `ahead` and `ways`, as in EntrySchedule (pumice/shared/entry_spec.h); how rows are read follows
/// from the problem.
struct TeamSchedule {
  std::int32_t team = 32;
  std::int32_t chunks = 1;
  std::int32_t ahead = 4;
  /// Units of rows and entries that a run has, which one team takes; 0: a team takes a row, however
  /// long it is, as also in products that make a number for each entry, which go over windows of
  /// entries.
  std::int32_t units = 0;
  /// Teams of a multiprocessor that take parts of long rows; 0: rows are not cut, as above.
  std::int32_t part_teams = 32;
  /// Teams of a warp that share the entries of a row, 32 threads together; 0: each team is by
  /// itself, as always in products that make a number for each entry.
  std::int32_t ways = 0;

  /// "t32x1_n4"; with ways "w4_t8x1_n4"
  std::string name() const;
  friend bool operator==(const TeamSchedule&, const TeamSchedule&) = default;
};

struct SparsePlan {
  SparseFormat format = SparseFormat::csr;
  std::int64_t column_parts = 1;           // of hyb
  std::int64_t width = 0;                  // of ell: of a line; of hyb: of the widest part
  std::optional<RangeSchedule> ranges{};   // the CPU's
  std::optional<TeamSchedule> teams{};     // a device's
  std::string reason{};                    // one sentence

  /// "csr/ranges of 65536/8 ahead", "hyb(1, 16)/ranges of 65536/8 ahead"; on a device
  /// "csr/t32x1_n4/runs of 8/parts 32", or "csr/t32x1_n4" without runs and parts.
  std::string name() const;
  /// "csr", "ell(32)", "hyb(1, 16)".
  std::string name_of_format() const;
  /// But for the reason.
  bool runs_like(const SparsePlan& other) const;
};

using SparsePlanPtr = std::shared_ptr<const SparsePlan>;

/// JSON of one line, and back: {"format":"csr","ranges":{"work":65536,"ahead":8}}. Without the
/// reason. UserError where the text is no plan of a sparse product; whether a plan suits a problem,
/// `check` says.
std::string to_text(const SparsePlan& plan);
SparsePlan parse_sparse_plan(std::string_view text);

}   // namespace pumice
