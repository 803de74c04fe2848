// What a problem of a sparse product says of itself.
#include <pumice/plan/sparse_problem.hpp>

#include <algorithm>
#include <array>

#include <pumice/core/error.hpp>

#include <fmt/format.h>

#include "core/printable.hpp"

namespace pumice {
namespace {

constexpr std::array kReductions{EntryReduction::sum, EntryReduction::mean, EntryReduction::max,
                                 EntryReduction::min};
constexpr std::array kOperators{SparseOperator::spmm, SparseOperator::sddmm,
                                SparseOperator::edge_scores};

template <class Value, std::size_t kCount>
Value named(std::string_view name, const std::array<Value, kCount>& all, const char* what,
            const char* choices) {
  const auto* const found =
      std::find_if(all.begin(), all.end(), [&](Value one) { return name_of(one) == name; });
  PUMICE_EXPECTS(found != all.end(), what, " = ", printable(name), ": choose ", choices);
  return *found;
}

}   // namespace

std::string_view name_of(EntryReduction reduction) {
  switch (reduction) {
    case EntryReduction::sum: return "sum";
    case EntryReduction::mean: return "mean";
    case EntryReduction::max: return "max";
    case EntryReduction::min: return "min";
  }
  PUMICE_ENSURES(false, "reduction ", static_cast<int>(reduction));
  return "";
}

std::string_view name_of(SparseOperator op) {
  switch (op) {
    case SparseOperator::spmm: return "spmm";
    case SparseOperator::sddmm: return "sddmm";
    case SparseOperator::edge_scores: return "edge_scores";
  }
  PUMICE_ENSURES(false, "operator ", static_cast<int>(op));
  return "";
}

std::string_view name_of(SparseDirection direction) {
  switch (direction) {
    case SparseDirection::forward: return "forward";
    case SparseDirection::features_gradient: return "features_gradient";
    case SparseDirection::values_gradient: return "values_gradient";
  }
  PUMICE_ENSURES(false, "direction ", static_cast<int>(direction));
  return "";
}

SparseOperator parse_sparse_operator(std::string_view name) {
  return named(name, kOperators, "operator", "spmm, sddmm or edge_scores");
}

EntryReduction parse_entry_reduction(std::string_view name) {
  return named(name, kReductions, "reduce", "sum, mean, max or min");
}

double SparseProblem::entries_per_row() const {
  return static_cast<double>(entries) / static_cast<double>(std::max<std::int64_t>(rows, 1));
}

std::string to_text(const SparseProblem& problem) {
  std::string text = fmt::format("{} {}", name_of(problem.op), name_of(problem.direction));
  if (problem.op == SparseOperator::spmm) text += fmt::format(" {}", name_of(problem.reduction));
  text += fmt::format(" {} channels {}", name_of(problem.dtype), problem.channels);
  if (problem.heads > 1) text += fmt::format(" heads {}", problem.heads);
  if (problem.weighted) text += " weighted";
  return text;
}

}   // namespace pumice
