// A book or the store behind a memo: choices are asked for in every layer, and neither of them
// answers in less than a microsecond.
#include "plan/measured_choices.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <shared_mutex>
#include <utility>
#include <vector>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/plan/plan_book.hpp>

#include <fmt/format.h>

#include "plan/choice_memo.hpp"
#include "plan/sparse_memo.hpp"
#include "plan/store/plan_rules.hpp"

namespace pumice {
namespace {

using tune::PlanKey;

constexpr const char* kConvolution = "convolution";

std::uint64_t next_number() {
  static std::atomic<std::uint64_t> last{0};
  return ++last;
}

/// Answers of one book or of one state of the store.
struct Answers {
  std::uint64_t number = next_number();
  std::shared_ptr<const PlanBook> book{};   // null: the store's
  std::uint64_t generation = 0;             // of the store
  bool are_none = false;                    // nothing was ever measured
  bool has_sparse = false;                  // sparse products were
  ChoiceMemo memo{};
  SparseMemo sparse_memo{};
};

class Current {
 public:
  std::shared_ptr<Answers> get() {
    {
      const std::shared_lock lock(mutex_);
      if (answers_ != nullptr && is_valid(*answers_)) return answers_;
    }
    auto fresh = std::make_shared<Answers>();
    tune::PlanStore& store = tune::process_plans();
    fresh->generation = store.generation();
    const std::vector<tune::StoredPlan> plans = store.list();
    fresh->are_none = plans.empty();
    fresh->has_sparse = std::any_of(plans.begin(), plans.end(), [](const tune::StoredPlan& one) {
      return is_of_sparse_product(one.key);
    });
    const std::unique_lock lock(mutex_);
    if (answers_ == nullptr || !is_valid(*answers_)) {
      answers_ = std::move(fresh);
      no_sparse_at_ = answers_->has_sparse ? 0 : answers_->generation;
    }
    return answers_;
  }

  /// No book is open, and since it was last looked at the store has no plan of a sparse product:
  /// what most calls find, without a lock.
  bool has_no_sparse() const {
    return no_sparse_at_.load(std::memory_order_acquire) == tune::process_plans().generation();
  }

  bool has_book() const {
    const std::shared_lock lock(mutex_);
    return answers_ != nullptr && answers_->book != nullptr;
  }

  void open(std::shared_ptr<const PlanBook> book) {
    const std::unique_lock lock(mutex_);
    std::shared_ptr<Answers>& opened = opened_[book.get()];   // which other books took turns with
    if (opened == nullptr) {
      opened = std::make_shared<Answers>();
      opened->are_none = book->size() == 0;
      opened->has_sparse = book->has_sparse();
      opened->book = std::move(book);
    }
    answers_ = opened;
    no_sparse_at_ = 0;
  }

  /// Back to the store.
  void close() {
    const std::unique_lock lock(mutex_);
    answers_ = nullptr;
    no_sparse_at_ = 0;
    opened_.clear();
  }

 private:
  static bool is_valid(const Answers& answers) {
    return answers.book != nullptr || answers.generation == tune::process_plans().generation();
  }

  mutable std::shared_mutex mutex_;
  std::shared_ptr<Answers> answers_;
  /// A generation of the store, which the answers are of; 0: they are of none, or have such plans.
  std::atomic<std::uint64_t> no_sparse_at_{0};
  std::map<const PlanBook*, std::shared_ptr<Answers>> opened_;   // in the scope that is open
};

Current& current() {
  static auto& one = *new Current;
  return one;
}

/// The buckets of a problem in place of its numbers.
ConvolutionProblem in_buckets(ConvolutionProblem problem) {
  problem.in_rows = 0;
  const std::int64_t rows = problem.out_rows;
  problem.out_rows = tune::rows_bucket(rows);
  if (problem.pairs > 0)   // which is told from "not known" by what no bucket reaches
    problem.pairs =
        1000 + tune::density_bucket(static_cast<double>(problem.pairs) /
                                    static_cast<double>(std::max<std::int64_t>(rows, 1)));
  return problem;
}

std::string reason_of(const tune::StoredPlan& stored, const char* where) {
  const std::string times = fmt::format("{:.3g}", stored.record.tuned_s / stored.record.untuned_s);
  return fmt::format("measured {}: {} the untuned {}", where,
                     times == "1" ? "the same time as" : times + " times the time of",
                     is_of_sparse_product(stored.key) ? "plan" : "layers on its map");
}

/// As `parse` reads it, checked and with a reason; null where it does not fit.
template <class Plan, class Problem>
std::shared_ptr<const Plan> plan_in(const tune::StoredPlan& stored, const Problem& problem,
                                    const Target& target, Plan (*parse)(std::string_view)) {
  try {
    Plan plan = parse(stored.record.plan);
    check(plan, problem, target);
    plan.reason = reason_of(stored, stored.is_shipped ? "for this release" : "on this machine");
    return std::make_shared<const Plan>(std::move(plan));
  } catch (const UserError& error) {
    const std::string text = detail::concatenate("a plan that was stored for ", to_text(problem),
                                                 " is left out: ", error.what());
    static std::atomic<bool> has_said{false};
    if (has_said.exchange(true)) {
      log(LogTopic::plan, text);
    } else {
      warn(text + "; tuning again replaces it (others that are left out: PUMICE_LOG=plan)");
    }
    return nullptr;
  }
}

}   // namespace

std::string machine_of(const Target& target) {
  if (target.on_device() || target.name.empty()) return target.name;
  const int count = threads();
  return fmt::format("{}, {} thread{}", target.name, count, count == 1 ? "" : "s");
}

PlanKey key_of(const ConvolutionProblem& problem, const Target& target) {
  PlanKey key{.device = machine_of(target),
              .version = PUMICE_VERSION,
              .operation = kConvolution,
              .direction = std::string(name_of(problem.direction)),
              .problem = to_text(problem),
              .rows_bucket = tune::rows_bucket(problem.out_rows)};
  if (problem.pairs > 0)
    key.density_bucket =
        tune::density_bucket(static_cast<double>(problem.pairs) /
                             static_cast<double>(std::max<std::int64_t>(problem.out_rows, 1)));
  return key;
}

PlanKey key_of(const SparseProblem& problem, const Target& target) {
  return {.device = machine_of(target),
          .version = PUMICE_VERSION,
          .operation = std::string(name_of(problem.op)),
          .direction = std::string(name_of(problem.direction)),
          .problem = to_text(problem),
          .rows_bucket = tune::rows_bucket(problem.rows),
          .density_bucket = density_bucket(problem)};
}

bool is_of_sparse_product(const PlanKey& key) {
  return key.operation != kConvolution;
}

std::string name_of_plan(const tune::StoredPlan& stored) {
  return is_of_sparse_product(stored.key) ? parse_sparse_plan(stored.record.plan).name()
                                          : parse_plan(stored.record.plan).name();
}

bool was_measured_for(const PlanKey& key, const Target& target) {
  return key.device == machine_of(target) && key.version == PUMICE_VERSION;
}

bool PlanBook::Before::operator()(const PlanKey& a, const PlanKey& b) const {
  return tune::comes_before(a, b);
}

void PlanBook::set(const ConvolutionProblem& problem, const Target& target, PlanPtr plan) {
  PUMICE_EXPECTS(plan != nullptr, "plan of a book is null; give one");
  check(*plan, problem, target);
  plans_.insert_or_assign(key_of(problem, target), std::move(plan));
}

void PlanBook::set(const SparseProblem& problem, const Target& target, SparsePlanPtr plan) {
  PUMICE_EXPECTS(plan != nullptr, "plan of a book is null; give one");
  check(*plan, problem, target);
  sparse_plans_.insert_or_assign(key_of(problem, target), std::move(plan));
}

PlanBook PlanBook::of(const std::vector<tune::StoredPlan>& plans) {
  PlanBook book;
  const auto with_reason = [](auto plan, const tune::StoredPlan& stored) {
    plan.reason = reason_of(stored, "in the table of plans");
    return std::make_shared<const decltype(plan)>(std::move(plan));
  };
  for (const tune::StoredPlan& stored : plans) {
    if (is_of_sparse_product(stored.key)) {
      book.sparse_plans_.insert_or_assign(
          stored.key, with_reason(parse_sparse_plan(stored.record.plan), stored));
    } else {
      book.plans_.insert_or_assign(stored.key, with_reason(parse_plan(stored.record.plan), stored));
    }
  }
  return book;
}

template <class Plan>
Plan PlanBook::find_in(const std::map<PlanKey, Plan, Before>& plans, const PlanKey& key) const {
  auto found = plans.find(key);
  if (found == plans.end()) {
    std::vector<tune::StoredPlan> alike;
    for (const auto& [other, plan] : plans) {
      if (tune::agree(other, key)) alike.push_back({.key = other, .record = {}});
    }
    const auto nearest = tune::nearest(key, alike);
    if (!nearest) return nullptr;
    found = plans.find(nearest->key);
  }
  of_use_.value = true;
  return found->second;
}

PlanPtr PlanBook::find(const PlanKey& key) const {
  return find_in(plans_, key);
}

SparsePlanPtr PlanBook::find_sparse(const PlanKey& key) const {
  return find_in(sparse_plans_, key);
}

PlanBookScope::PlanBookScope(std::shared_ptr<const PlanBook> book) {
  PUMICE_EXPECTS(!current().has_book(),
                 "another book of plans is open: one tuning at a time in a process");
  use(std::move(book));
}

PlanBookScope::~PlanBookScope() {
  current().close();
}

void PlanBookScope::use(std::shared_ptr<const PlanBook> book) {
  PUMICE_EXPECTS(book != nullptr, "book of plans is null; give an empty one for none");
  current().open(std::move(book));
}

std::uint64_t plans_in_use() {
  return current().get()->number;
}

std::optional<tune::StoredPlan> stored_plan(const ConvolutionProblem& problem,
                                            const Target& target) {
  if (target.name.empty()) return std::nullopt;
  return tune::process_plans().find(key_of(problem, target));
}

std::optional<tune::StoredPlan> stored_plan(const SparseProblem& problem, const Target& target) {
  if (target.name.empty()) return std::nullopt;
  return tune::process_plans().find(key_of(problem, target));
}

PlanPtr measured_choice(const ConvolutionProblem& problem, const Target& target) {
  if (target.name.empty()) return nullptr;
  const std::shared_ptr<Answers> answers = current().get();
  if (answers->are_none) return nullptr;
  ChoiceKey key = choice_key(in_buckets(problem), target);
  key.device = machine_of(target);
  if (std::optional<PlanPtr> known = answers->memo.find(key)) return *std::move(known);
  PlanPtr plan;
  if (answers->book != nullptr) {
    plan = answers->book->find(key_of(problem, target));
    if (plan != nullptr) check(*plan, problem, target);   // of another bucket, or from a table
  } else if (const auto stored = stored_plan(problem, target)) {
    plan = plan_in(*stored, problem, target, &parse_plan);
  }
  return answers->memo.keep(key, std::move(plan));
}

SparsePlanPtr measured_choice(const SparseProblem& problem, const Target& target) {
  if (target.name.empty() || current().has_no_sparse()) return nullptr;
  const std::shared_ptr<Answers> answers = current().get();
  if (!answers->has_sparse) return nullptr;
  const SparseKey key = sparse_key(problem, target);
  if (std::optional<SparsePlanPtr> known = answers->sparse_memo.find(key)) return *std::move(known);
  // The answer is for all problems of the key: whether their entries suit it, `choose` looks.
  SparseProblem any = problem;
  any.entries = 0;
  SparsePlanPtr plan;
  if (answers->book != nullptr) {
    plan = answers->book->find_sparse(key_of(problem, target));
    if (plan != nullptr) check(*plan, any, target);   // of another bucket, or from a table
  } else if (const auto stored = stored_plan(problem, target)) {
    plan = plan_in(*stored, any, target, &parse_sparse_plan);
  }
  return answers->sparse_memo.keep(key, std::move(plan));
}

}   // namespace pumice
