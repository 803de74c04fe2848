// Plans by what they are for, which `choose` takes before its rules: those that a tuner tries, or
// that were measured before.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <pumice/plan/convolution_plan.hpp>
#include <pumice/plan/problem.hpp>
#include <pumice/plan/sparse_plan.hpp>
#include <pumice/plan/sparse_problem.hpp>
#include <pumice/plan/store.hpp>
#include <pumice/plan/target.hpp>

namespace pumice {

/// What plans are kept under: the name of a device; of a CPU its threads too, among which tiles are
/// shared out ("AMD EPYC, AVX3_DL, 2 threads"). Empty where the target has no name.
std::string machine_of(const Target& target);

/// What a plan is kept under: all of the problem but the numbers of rows and pairs, which go into
/// buckets. Problems of one key share their plan.
tune::PlanKey key_of(const ConvolutionProblem& problem, const Target& target);
/// The same of a sparse product, whose entries of a row are its density: how long rows are beyond
/// that is no part of the key, since a device does not know it.
tune::PlanKey key_of(const SparseProblem& problem, const Target& target);

/// Whether the plan of a key is of a sparse product; else it is of a convolution.
bool is_of_sparse_product(const tune::PlanKey& key);

/// What a stored plan is called. UserError where its text is no plan of its operation.
std::string name_of_plan(const tune::StoredPlan& stored);

/// The plans of a table (pumice/plan/store.hpp). UserError that names file and entry where it is
/// none, and for a plan of this version that nobody could read.
std::vector<tune::StoredPlan> read_plans(const std::filesystem::path& file);

/// Whether a plan of this key was measured on such a machine, by this version.
bool was_measured_for(const tune::PlanKey& key, const Target& target);

/// A plan for each of some keys.
class PlanBook {
 public:
  /// UserError where the plan does not fit (`check` of pumice/plan/choose.hpp).
  void set(const ConvolutionProblem& problem, const Target& target, PlanPtr plan);
  void set(const SparseProblem& problem, const Target& target, SparsePlanPtr plan);
  /// The plans of a table (pumice/plan/store.hpp), of every device and version in it: `find` takes
  /// those of its key. UserError where the text of one is no plan; whether it fits its problem is
  /// checked when a layer asks for it.
  static PlanBook of(const std::vector<tune::StoredPlan>& plans);
  /// That of the key, else of the nearest buckets, by the rule of PlanStore::find; null: none.
  PlanPtr find(const tune::PlanKey& key) const;
  SparsePlanPtr find_sparse(const tune::PlanKey& key) const;
  std::size_t size() const { return plans_.size() + sparse_plans_.size(); }
  bool has_sparse() const { return !sparse_plans_.empty(); }
  /// Whether `find` had a plan for somebody. A copy starts anew.
  bool was_of_use() const { return of_use_.value; }

 private:
  /// Set by any number of threads.
  struct Flag {
    Flag() = default;
    Flag(const Flag& /*other*/) {}
    Flag& operator=(const Flag& /*other*/) { return *this; }
    std::atomic<bool> value = false;
  };
  struct Before {
    bool operator()(const tune::PlanKey& a, const tune::PlanKey& b) const;
  };

  template <class Plan>
  Plan find_in(const std::map<tune::PlanKey, Plan, Before>& plans, const tune::PlanKey& key) const;

  std::map<tune::PlanKey, PlanPtr, Before> plans_;
  std::map<tune::PlanKey, SparsePlanPtr, Before> sparse_plans_;
  mutable Flag of_use_;
};

/// As long as it lives, `choose` asks this book and no store, in all threads; what the book does
/// not have follows the rules. An empty book: nothing that was measured is used. One at a time;
/// UserError for a second one.
class PlanBookScope {
 public:
  explicit PlanBookScope(std::shared_ptr<const PlanBook> book);
  ~PlanBookScope();
  PlanBookScope(const PlanBookScope&) = delete;
  PlanBookScope& operator=(const PlanBookScope&) = delete;

  /// Goes on with another book.
  void use(std::shared_ptr<const PlanBook> book);
};

/// Stays the same as long as `choose` takes its plans from the same book, or the same state of the
/// store: for those who keep what plans led to.
std::uint64_t plans_in_use();

/// The record that `choose` takes for such a problem from the process's store, if any.
std::optional<tune::StoredPlan> stored_plan(const ConvolutionProblem& problem,
                                            const Target& target);
std::optional<tune::StoredPlan> stored_plan(const SparseProblem& problem, const Target& target);

}   // namespace pumice
