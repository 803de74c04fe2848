// Answers in memory, the user's database, and what was shipped below it.
#include <pumice/plan/store.hpp>

#include <algorithm>
#include <map>
#include <mutex>
#include <set>
#include <system_error>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cache_folder.hpp"
#include "core/environment.hpp"
#include "core/installed.hpp"
#include "core/printable.hpp"
#include "plan/store/locks.hpp"
#include "plan/store/plan_database.hpp"
#include "plan/store/plan_rules.hpp"
#include "plan/store/plan_table.hpp"

namespace pumice::tune {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostAnswers = 65536;   // more than a process has layers; then from the start
constexpr const char* kFileName =
    "plans-v1.sqlite";   // the schema: an older Pumice has another file

void expect_key(const PlanKey& key) {
  const std::string problem = problem_of(key);
  PUMICE_EXPECTS(problem.empty(), "key of a plan: ", problem);
}

void expect_record(const PlanRecord& record) {
  const std::string problem = problem_of(record);
  PUMICE_EXPECTS(problem.empty(), "record of a plan: ", problem);
}

struct ByKey {
  bool operator()(const PlanKey& a, const PlanKey& b) const { return comes_before(a, b); }
};

}   // namespace

class PlanStore::Content {
 public:
  explicit Content(const Places& places)
      : database(places.database, places.is_default), folders_(places.shipped_folders) {}

  /// What is wrong with the disk is said once, and is no error: everything works untuned.
  template <class Result, class Action>
  Result or_warn(const fs::path& file, const char* what, Result otherwise, Action&& action) {
    std::string text;
    try {
      return action();
    } catch (const UserError&) {
      throw;
    } catch (const DatabaseError& error) {
      text = error.what();
    } catch (const std::system_error& error) {
      text = error.what();
    }
    text =
        detail::concatenate("tuned plans are not ", what, ": ", printable_path(file), ": ", text);
    const std::lock_guard lock(answers_mutex());
    problem_ = text;
    if (said_.insert(what).second) warn(text);
    return otherwise;
  }

  std::string problem() const {
    const std::lock_guard lock(answers_mutex());
    return problem_;
  }

  /// Whether `key` was answered before, and how.
  bool remembers(const PlanKey& key, std::optional<StoredPlan>& answer) const {
    const std::lock_guard lock(answers_mutex());
    const auto found = answers_.find(key);
    if (found == answers_.end()) return false;
    answer = found->second;
    return true;
  }
  void remember(const PlanKey& key, const std::optional<StoredPlan>& answer) {
    const std::lock_guard lock(answers_mutex());
    if (answers_.size() >= kMostAnswers) answers_.clear();
    answers_.insert_or_assign(key, answer);
  }
  void forget() {
    const std::lock_guard lock(answers_mutex());
    answers_.clear();
  }

  /// Read when it is first needed. A table that is none is left out with a warning.
  const std::vector<StoredPlan>& shipped() {
    if (std::exchange(has_read_shipped_, true)) return shipped_;
    for (const fs::path& folder : folders_) {
      std::error_code is_absent;
      std::set<fs::path> files;   // in the order of their names
      for (fs::directory_iterator entry(folder, is_absent), end; !is_absent && entry != end;
           entry.increment(is_absent)) {
        if (entry->path().extension() == ".json") files.insert(entry->path());
      }
      for (const fs::path& file : files)
        read_shipped(file);
    }
    std::stable_sort(
        shipped_.begin(), shipped_.end(),
        [](const StoredPlan& a, const StoredPlan& b) { return comes_before(a.key, b.key); });
    return shipped_;
  }

  PlanDatabase database;   // under database_mutex, and so are the shipped tables

 private:
  void read_shipped(const fs::path& file) {
    try {
      for (StoredPlan& plan : read_plan_table(file)) {
        plan.is_shipped = true;
        shipped_.push_back(std::move(plan));
      }
    } catch (const UserError& error) {
      warn(detail::concatenate("a table of plans is left out: ", error.what()));
    }
  }

  std::vector<fs::path> folders_;
  std::vector<StoredPlan> shipped_;
  bool has_read_shipped_ = false;

  std::map<PlanKey, std::optional<StoredPlan>, ByKey> answers_;
  std::set<std::string> said_;
  std::string problem_;
};

PlanStore::PlanStore(Places places)
    : places_(std::move(places)), content_(std::make_unique<Content>(places_)) {}

PlanStore::~PlanStore() = default;

std::optional<StoredPlan> PlanStore::find(const PlanKey& key) {
  std::optional<StoredPlan> answer;
  if (content_->remembers(key, answer)) return answer;
  expect_key(key);
  const std::lock_guard lock(database_mutex());   // no answer changes while one is looked for
  answer = nearest(key, content_->or_warn(places_.database, "read", std::vector<StoredPlan>(),
                                          [&] { return content_->database.agreeing(key); }));
  if (!answer) {
    std::vector<StoredPlan> agreeing;
    for (const StoredPlan& plan : content_->shipped()) {
      if (agree(plan.key, key)) agreeing.push_back(plan);
    }
    answer = nearest(key, agreeing);
  }
  content_->remember(key, answer);
  return answer;
}

Put PlanStore::put(const PlanKey& key, const PlanRecord& record) {
  return put_all({{.key = key, .record = record}});
}

Put PlanStore::put_all(const std::vector<StoredPlan>& plans) {
  std::vector<StoredPlan> dated = plans;
  for (StoredPlan& plan : dated) {
    expect_key(plan.key);
    if (plan.record.measured_ms == 0) plan.record.measured_ms = now_ms();
    expect_record(plan.record);
    PUMICE_EXPECTS(plan.record.measured_ms <= far_future_ms(),
                   "record of a plan: measured_ms is more than a day from now; give the time of "
                   "the measurement, or 0");
  }
  const std::lock_guard lock(database_mutex());
  const Put done = content_->or_warn(places_.database, "stored", Put::not_written, [&] {
    if (places_.database.empty()) return Put::not_written;
    const Merge merge = content_->database.merge(dated);
    return merge.added + merge.replaced > 0 ? Put::stored : Put::outdated;
  });
  if (done == Put::stored) refresh();
  return done;
}

std::vector<StoredPlan> PlanStore::list() {
  const std::lock_guard lock(database_mutex());
  std::vector<StoredPlan> plans =
      content_->or_warn(places_.database, "read", std::vector<StoredPlan>(),
                        [&] { return content_->database.all(); });
  const std::vector<StoredPlan>& shipped = content_->shipped();
  plans.insert(plans.end(), shipped.begin(), shipped.end());
  return plans;
}

namespace {

/// Who asks for this wants it done: what prevents it is an error.
template <class Action> auto or_raise(const fs::path& file, Action&& action) {
  try {
    return action();
  } catch (const DatabaseError& error) {
    detail::raise_user(printable_path(file), ": ", error.what(),
                       "; give it room and permissions, or name another file in PUMICE_PLANS");
  } catch (const std::system_error& error) {
    detail::raise_user(printable_path(file), ": ", printable_message(error.what()));
  }
}

}   // namespace

std::int64_t PlanStore::erase_other_versions(std::string_view version) {
  const std::lock_guard lock(database_mutex());
  const std::int64_t erased =
      or_raise(places_.database, [&] { return content_->database.erase_other_versions(version); });
  if (erased > 0) refresh();
  return erased;
}

std::int64_t PlanStore::export_to(const fs::path& file) {
  const std::lock_guard lock(database_mutex());
  const std::vector<StoredPlan> plans =
      or_raise(places_.database, [&] { return content_->database.all(); });
  write_plan_table(file, plans);
  return static_cast<std::int64_t>(plans.size());
}

Merge PlanStore::merge(const std::vector<StoredPlan>& plans) {
  PUMICE_EXPECTS(!places_.database.empty(), "there is no place to keep ", plans.size(),
                 " plans; name a file in PUMICE_PLANS");
  for (const StoredPlan& plan : plans) {
    expect_key(plan.key);
    expect_record(plan.record);
  }
  const std::lock_guard lock(database_mutex());
  const Merge merge = or_raise(places_.database, [&] { return content_->database.merge(plans); });
  if (merge.added + merge.replaced > 0) refresh();
  return merge;
}

void PlanStore::refresh() {
  content_->forget();
  generation_.fetch_add(1, std::memory_order_acq_rel);
}

std::string PlanStore::problem() const {
  return content_->problem();
}

PlanStore& process_plans() {
  static PlanStore store([] {
    const std::string& named = environment::plans();
    if (named == "off") return PlanStore::Places{};
    PlanStore::Places places{.database = named, .is_default = named.empty()};
    const fs::path folder = cache_folder_from_environment();
    if (named.empty() && !folder.empty()) places.database = folder / kFileName;
    places.shipped_folders = installed_places("plans");
    return places;
  }());
  return store;
}

}   // namespace pumice::tune
