// A choice for a sparse product in words.
#include <algorithm>

#include <pumice/plan/choose_sparse.hpp>

#include <fmt/format.h>

namespace pumice {
namespace {

/// "rows of 0 entries: 3, 1: 10, 2: 5, 3 to 4: 1", those that there are.
std::string words_of(const RowLengths& lengths) {
  std::string text;
  for (std::size_t bucket = 0; bucket < RowLengths::kBuckets; ++bucket) {
    if (lengths.rows[bucket] == 0) continue;
    const std::int64_t most = bucket == 0 ? 0 : std::int64_t{1} << (bucket - 1);
    const std::int64_t least = bucket < 2 ? most : most / 2 + 1;
    text += text.empty() ? "rows of " : ", ";
    text += least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    text += fmt::format("{}: {}", text.find("entries") == std::string::npos ? " entries" : "",
                        lengths.rows[bucket]);
  }
  return text;
}

/// Why a format was passed over.
std::string why_not(const SparseProblem& problem, const Target& target) {
  if (!can_cut(problem, target)) return "such a product goes over rows as they are";
  if (target.on_device())
    return "a cut waits for the device, and gains with few channels only: tuning measures it";
  return "a thread would bring the entries of each row together from its lines";
}

}   // namespace

std::string explain(const SparseProblem& problem, const Target& target, const SparsePlan& plan) {
  std::string text =
      fmt::format("{}: {} x {}, {} entries, {:.2f} a row", to_text(problem), problem.rows,
                  problem.columns, problem.entries, problem.entries_per_row());
  if (problem.lengths != nullptr) {
    text += fmt::format(", {} in the longest", problem.lengths->longest);
    if (problem.rows > 0) text += "\n  " + words_of(*problem.lengths);
  }
  text += fmt::format("\n  {}: {}\n", plan.name(), plan.reason);
  for (const SparseFormat other : {SparseFormat::csr, SparseFormat::ell, SparseFormat::hyb}) {
    if (other == plan.format) continue;
    text += fmt::format("  not {}: {}\n", name_of(other),
                        other == SparseFormat::csr ? "another was measured or asked for"
                                                   : why_not(problem, target));
  }
  for (const SparseCandidate& other : candidates(problem, target)) {
    if (other.plan.runs_like(plan)) continue;
    const std::string times = fmt::format("{:.2f}", other.cost);
    text += fmt::format("  {:<60} {}, by prediction\n", other.plan.name(),
                        times == "1.00" ? "the same time" : times + " times the time");
  }
  return text;
}

}   // namespace pumice
