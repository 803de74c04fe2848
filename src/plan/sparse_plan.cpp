// Names of plans of sparse products, and comparing them.
#include <pumice/plan/sparse_plan.hpp>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

namespace pumice {

std::string_view name_of(SparseFormat format) {
  switch (format) {
    case SparseFormat::csr: return "csr";
    case SparseFormat::ell: return "ell";
    case SparseFormat::hyb: return "hyb";
  }
  PUMICE_ENSURES(false, "format ", static_cast<int>(format));
  return "";
}

std::string TeamSchedule::name() const {
  const std::string of_team = fmt::format("t{}x{}_n{}", team, chunks, ahead);
  return ways == 0 ? of_team : fmt::format("w{}_{}", ways, of_team);
}

std::string SparsePlan::name_of_format() const {
  switch (format) {
    case SparseFormat::csr: return "csr";
    case SparseFormat::ell: return fmt::format("ell({})", width);
    case SparseFormat::hyb: return fmt::format("hyb({}, {})", column_parts, width);
  }
  PUMICE_ENSURES(false, "format ", static_cast<int>(format));
  return "";
}

std::string SparsePlan::name() const {
  std::string text = name_of_format();
  if (ranges) text += fmt::format("/ranges of {}/{} ahead", ranges->work, ranges->ahead);
  if (teams) {
    text += fmt::format("/{}", teams->name());
    if (teams->units > 0) text += fmt::format("/runs of {}", teams->units);
    if (teams->part_teams > 0) text += fmt::format("/parts {}", teams->part_teams);
  }
  return text;
}

bool SparsePlan::runs_like(const SparsePlan& other) const {
  return format == other.format && column_parts == other.column_parts && width == other.width &&
         ranges == other.ranges && teams == other.teams;
}

}   // namespace pumice
