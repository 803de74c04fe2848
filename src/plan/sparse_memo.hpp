// What was found for sparse products, in one book or one state of the store.
#pragma once

#include <cstdint>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>

#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

/// A problem by its buckets: what a look-up depends on.
struct SparseKey {
  SparseProblem problem;   // rows and entries are buckets, columns and lengths are left out
  std::string device;      // its name: others of as many multiprocessors have plans of their own

  friend bool operator==(const SparseKey&, const SparseKey&) = default;
};

/// Of the entries of a row, however many there are.
int density_bucket(const SparseProblem& problem);

SparseKey sparse_key(const SparseProblem& problem, const Target& target);

/// A table behind a lock that readers share.
class SparseMemo {
 public:
  /// Nothing: not known. Null: known to be none.
  std::optional<SparsePlanPtr> find(const SparseKey& key) const;
  /// Keeps `made`, unless another thread was faster; returns what is kept.
  SparsePlanPtr keep(const SparseKey& key, SparsePlanPtr made);

 private:
  struct Hash {
    std::size_t operator()(const SparseKey& key) const;
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<SparseKey, SparsePlanPtr, Hash> choices_;
};

}   // namespace pumice
