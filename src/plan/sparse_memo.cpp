// Keys by buckets, and the table.
#include "plan/sparse_memo.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include <pumice/plan/plan_book.hpp>

namespace pumice {

int density_bucket(const SparseProblem& problem) {
  constexpr double kMost = 5e8;   // what is denser is in the last bucket
  return tune::density_bucket(std::min(problem.entries_per_row(), kMost));
}

SparseKey sparse_key(const SparseProblem& problem, const Target& target) {
  SparseKey key{problem, machine_of(target)};
  key.problem.rows = tune::rows_bucket(problem.rows);
  key.problem.entries = density_bucket(problem);
  key.problem.columns = 0;
  key.problem.lengths = nullptr;
  return key;
}

std::size_t SparseMemo::Hash::operator()(const SparseKey& key) const {
  const SparseProblem& p = key.problem;
  const std::uint64_t words[] = {static_cast<std::uint64_t>(p.rows << 32 ^ p.entries),
                                 static_cast<std::uint64_t>(p.channels << 32 ^ p.heads),
                                 static_cast<std::uint64_t>(p.op) |
                                     static_cast<std::uint64_t>(p.direction) << 8 |
                                     static_cast<std::uint64_t>(p.reduction) << 16 |
                                     static_cast<std::uint64_t>(p.dtype) << 24 |
                                     static_cast<std::uint64_t>(p.weighted ? 1 : 0) << 32};
  std::uint64_t hash = 0;
  for (const std::uint64_t word : words) {
    hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

std::optional<SparsePlanPtr> SparseMemo::find(const SparseKey& key) const {
  const std::shared_lock lock(mutex_);
  const auto found = choices_.find(key);
  if (found == choices_.end()) return std::nullopt;
  return found->second;
}

SparsePlanPtr SparseMemo::keep(const SparseKey& key, SparsePlanPtr made) {
  const std::unique_lock lock(mutex_);
  return choices_.emplace(key, std::move(made)).first->second;
}

}   // namespace pumice
