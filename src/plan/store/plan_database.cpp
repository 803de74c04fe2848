// One table. Its file is recognised by an application number and a schema number.
#include "plan/store/plan_database.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include <pumice/core/error.hpp>
#include <pumice/core/log.hpp>

#include "core/cache_folder.hpp"
#include "core/printable.hpp"
#include "core/system_call.hpp"
#include "plan/store/plan_rules.hpp"
#include "plan/store/set_aside.hpp"

namespace pumice::tune {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kApplication = 0x50756d69;   // "Pumi"
constexpr std::int64_t kSchema = 1;
constexpr int kNoDensity = -1000;   // in the file, where a part of a primary key cannot be missing

constexpr const char* kCreate = R"(
  CREATE TABLE plans(
    device TEXT NOT NULL, version TEXT NOT NULL, operation TEXT NOT NULL, direction TEXT NOT NULL,
    problem TEXT NOT NULL, rows_bucket INTEGER NOT NULL, density_bucket INTEGER NOT NULL,
    plan TEXT NOT NULL, tuned_s REAL NOT NULL, untuned_s REAL NOT NULL, confidence REAL NOT NULL,
    samples INTEGER NOT NULL, measured_ms INTEGER NOT NULL,
    PRIMARY KEY(device, version, operation, direction, problem, rows_bucket, density_bucket)
  ) WITHOUT ROWID;
  PRAGMA application_id = 1349873001;
  PRAGMA user_version = 1;
)";
static_assert(kApplication == 1349873001 && kSchema == 1);

constexpr const char* kColumns =
    "device, version, operation, direction, problem, rows_bucket, density_bucket, "
    "plan, tuned_s, untuned_s, confidence, samples, measured_ms";

// The later one stays, or the one with better evidence; a date of a wrong clock (the last parameter
// is tomorrow) gives way to every other.
constexpr const char* kPut = R"(
  INSERT INTO plans VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT DO UPDATE SET
    plan = excluded.plan, tuned_s = excluded.tuned_s, untuned_s = excluded.untuned_s,
    confidence = excluded.confidence, samples = excluded.samples,
    measured_ms = excluded.measured_ms
  WHERE plans.measured_ms > ? OR
    (excluded.measured_ms, excluded.confidence, excluded.samples, excluded.plan, excluded.tuned_s,
     excluded.untuned_s) >
    (plans.measured_ms, plans.confidence, plans.samples, plans.plan, plans.tuned_s,
     plans.untuned_s)
)";

/// Rows that are plans; others were put there by somebody else.
std::vector<StoredPlan> plans_of(Statement& statement) {
  std::vector<StoredPlan> plans;
  while (statement.step()) {
    StoredPlan plan;
    plan.key = {.device = statement.text(0),
                .version = statement.text(1),
                .operation = statement.text(2),
                .direction = statement.text(3),
                .problem = statement.text(4),
                .rows_bucket = static_cast<int>(statement.integer(5))};
    if (statement.integer(6) != kNoDensity)
      plan.key.density_bucket = static_cast<int>(statement.integer(6));
    plan.record = {.plan = statement.text(7),
                   .tuned_s = statement.real(8),
                   .untuned_s = statement.real(9),
                   .confidence = statement.real(10),
                   .samples = statement.integer(11),
                   .measured_ms = statement.integer(12)};
    std::string problem = problem_of(plan.key);
    if (problem.empty()) problem = problem_of(plan.record);
    if (problem.empty()) {
      plans.push_back(std::move(plan));
    } else {
      log(LogTopic::plan, "a row of the database is left out: " + problem);
    }
  }
  return plans;
}

void bind_texts(Statement& statement, const PlanKey& key) {
  statement.bind(0, key.device).bind(1, key.version).bind(2, key.operation);
  statement.bind(3, key.direction).bind(4, key.problem);
}

bool put_into(Database& database, const PlanKey& key, const PlanRecord& record) {
  Statement statement = database.prepare(kPut);
  bind_texts(statement, key);
  statement.bind(5, std::int64_t{key.rows_bucket});
  statement.bind(6, std::int64_t{key.density_bucket.value_or(kNoDensity)});
  statement.bind(7, record.plan).bind(8, record.tuned_s).bind(9, record.untuned_s);
  statement.bind(10, record.confidence).bind(11, record.samples).bind(12, record.measured_ms);
  statement.bind(13, far_future_ms());
  statement.step();
  return database.changes() > 0;
}

bool has(Database& database, const PlanKey& key) {
  Statement statement = database.prepare(
      "SELECT 1 FROM plans WHERE (device, version, operation, direction, problem, rows_bucket, "
      "density_bucket) = (?, ?, ?, ?, ?, ?, ?)");
  bind_texts(statement, key);
  statement.bind(5, std::int64_t{key.rows_bucket});
  statement.bind(6, std::int64_t{key.density_bucket.value_or(kNoDensity)});
  return statement.step();
}

/// A write-ahead log needs memory that all its processes share, which those of several hosts do
/// not.
bool is_shared_by_hosts(const fs::path& file) {
  constexpr std::array<unsigned, 6> kKinds{0x6969 /* NFS */,      0xff534d42 /* CIFS */,
                                           0xfe534d42 /* SMB2 */, 0x0bd00bd0 /* Lustre */,
                                           0x47504653 /* GPFS */, 0x65735546 /* FUSE */};
  struct statfs status {};
  if (::statfs(file.c_str(), &status) != 0) return false;
  return std::find(kKinds.begin(), kKinds.end(), static_cast<unsigned>(status.f_type)) !=
         kKinds.end();
}

/// Whether it begins as a database of ours does, whatever became of the rest.
bool begins_as_ours(const fs::path& file) {
  constexpr std::size_t kApplicationAt = 68;
  std::array<unsigned char, 72> head{};
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor < 0) return false;
  const ssize_t got = ::pread(descriptor, head.data(), head.size(), 0);
  ::close(descriptor);
  constexpr std::string_view kSqlite{"SQLite format 3\0", 16};
  if (got != ssize_t{head.size()} || !std::equal(kSqlite.begin(), kSqlite.end(), head.begin()))
    return false;
  std::int64_t application = 0;
  for (std::size_t i = kApplicationAt; i < head.size(); ++i)
    application = application << 8 | head[i];
  return application == kApplication;
}

}   // namespace

struct PlanDatabase::Look {
  enum class Is : unsigned char { usable, absent, not_started, damaged, foreign };
  Is is = Is::absent;
  std::string why{};   // in a few words, where it is damaged or foreign
  std::unique_ptr<Database> database{};
  bool may_write = false;
};

PlanDatabase::PlanDatabase(fs::path file, bool is_default)
    : file_(std::move(file)), is_default_(is_default) {}

/// What lies there. Opens it, if it is ours and whole.
PlanDatabase::Look PlanDatabase::look() {
  using Is = Look::Is;
  struct stat status {};
  if (::lstat(file_.c_str(), &status) != 0 && (errno == ENOENT || errno == ENOTDIR)) return {};
  if (::stat(file_.c_str(), &status) != 0)
    return {.is = Is::foreign, .why = "cannot be reached: " + detail::reason(errno)};
  if (S_ISDIR(status.st_mode)) return {.is = Is::foreign, .why = "is a folder"};
  if (!S_ISREG(status.st_mode)) return {.is = Is::foreign, .why = "is not a regular file"};
  if (::faccessat(AT_FDCWD, file_.c_str(), R_OK, AT_EACCESS) != 0)
    return {.is = Is::foreign, .why = "cannot be read: " + detail::reason(errno)};
  Look found;
  const auto may = [&](const fs::path& path) {
    return ::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
  };
  const fs::path folder = fs::absolute(file_).parent_path();
  found.may_write = may(file_) && may(folder);
  if (status.st_size == 0) return {.is = Is::not_started};
  try {
    // Without a log there is nothing that a lock would keep apart, and no place for one.
    const bool has_log = fs::exists(file_.string() + "-wal");
    auto access = has_log ? Database::Access::read : Database::Access::frozen;
    if (found.may_write)   // somebody else's is not written, not even to tidy it up
      access = begins_as_ours(file_) ? Database::Access::write : Database::Access::read;
    found.database = std::make_unique<Database>(file_, access);
    const std::int64_t application = found.database->number("PRAGMA application_id");
    const std::int64_t schema = found.database->number("PRAGMA user_version");
    const std::int64_t tables = found.database->number("SELECT count(*) FROM sqlite_master");
    if (application == 0 && schema == 0 && tables == 0) return {.is = Is::not_started};
    if (application != kApplication)
      return {.is = Is::foreign, .why = "is a database of another program"};
    if (schema > kSchema)
      return {.is = Is::foreign,
              .why = detail::concatenate("was written by a newer Pumice, with schema ", schema,
                                         " where this one knows ", kSchema)};
    if (schema < kSchema) return {.is = Is::damaged, .why = "has no schema"};
    if (status.st_ino != checked_inode_) {
      const std::string check = found.database->text("PRAGMA quick_check(1)");
      if (check != "ok") return {.is = Is::damaged, .why = "is damaged: " + printable(check, 200)};
    }
    found.database->prepare((std::string("SELECT ") + kColumns + " FROM plans").c_str());
    if (found.may_write) {
      found.database->run("PRAGMA synchronous = FULL");
      if (!is_shared_by_hosts(file_)) found.database->run("PRAGMA journal_mode = WAL");
    }
    checked_inode_ = status.st_ino;
  } catch (const DatabaseError& error) {
    if (error.kind() != DatabaseError::Kind::damaged) throw;
    const bool is_ours = begins_as_ours(file_);
    return {.is = is_ours ? Is::damaged : Is::foreign,
            .why = std::string(is_ours ? "is damaged: " : "is no database: ") + error.what()};
  }
  found.is = Is::usable;
  return found;
}

void PlanDatabase::clear_the_way(const Look& found) {
  const std::string name = printable_path(file_);
  PUMICE_EXPECTS(is_default_ || found.is == Look::Is::damaged, "PUMICE_PLANS = ", name, ": it ",
                 found.why, "; name another file, or one that is not there yet");
  const fs::path aside = set_aside(file_);
  warn(detail::concatenate(name, " ", found.why, ". It was renamed to ", printable_path(aside),
                           ", and tuned plans begin anew"));
}

void PlanDatabase::create() {
  Database database(file_, Database::Access::create);
  // Before there is a log, so that the numbers that make it known are in the file itself.
  Transaction transaction(database);
  database.run(kCreate);
  transaction.commit();
}

PlanDatabase::Look PlanDatabase::opened(Purpose purpose) {
  using Is = Look::Is;
  const fs::path folder = fs::absolute(file_).parent_path();
  if (is_default_) {
    const std::string problem = problem_of_cache_folder(folder);
    if (!problem.empty()) throw DatabaseError(DatabaseError::Kind::other, problem);
    if (purpose == Purpose::write) make_cache_folder(folder);
  }
  Look found = look();
  const bool is_missing = found.is == Is::absent || found.is == Is::not_started;
  if (found.is == Is::usable || (is_missing && purpose == Purpose::read)) return found;
  const FolderLock lock(folder);
  found = look();   // another process may have put it right
  if (found.is == Is::damaged || found.is == Is::foreign) {
    clear_the_way(found);
    found = {};
  }
  if (found.is == Is::usable || purpose == Purpose::read) return found;
  create();
  return look();
}

template <class Result, class Action>
Result PlanDatabase::with_database(Purpose purpose, Result otherwise, Action&& action) {
  if (file_.empty()) return otherwise;
  for (bool is_second = false;; is_second = true) {
    try {
      const Look found = opened(purpose);
      if (found.is != Look::Is::usable) {
        if (purpose == Purpose::read) return otherwise;
        throw DatabaseError(DatabaseError::Kind::other, found.why);
      }
      if (purpose == Purpose::write && !found.may_write)
        throw DatabaseError(DatabaseError::Kind::other, "the file or its folder is read-only");
      return action(*found.database);
    } catch (const DatabaseError& error) {
      checked_inode_ = 0;
      if (error.kind() != DatabaseError::Kind::damaged || is_second) throw;
    }
  }
}

std::vector<StoredPlan> PlanDatabase::agreeing(const PlanKey& key) {
  return with_database(Purpose::read, std::vector<StoredPlan>(), [&](Database& database) {
    Statement statement = database.prepare(
        (std::string("SELECT ") + kColumns +
         " FROM plans WHERE (device, version, operation, direction, problem) = (?, ?, ?, ?, ?)")
            .c_str());
    bind_texts(statement, key);
    return plans_of(statement);
  });
}

std::vector<StoredPlan> PlanDatabase::all() {
  return with_database(Purpose::read, std::vector<StoredPlan>(), [&](Database& database) {
    Statement statement =
        database.prepare((std::string("SELECT ") + kColumns + " FROM plans").c_str());
    std::vector<StoredPlan> plans = plans_of(statement);
    std::sort(plans.begin(), plans.end(),
              [](const StoredPlan& a, const StoredPlan& b) { return comes_before(a.key, b.key); });
    return plans;
  });
}

Merge PlanDatabase::merge(const std::vector<StoredPlan>& plans) {
  return with_database(Purpose::write, Merge(), [&](Database& database) {
    Merge merge;
    Transaction transaction(database);
    for (const StoredPlan& plan : plans) {
      const bool is_new = !has(database, plan.key);
      if (plan.record.measured_ms > far_future_ms()) {
        ++merge.skipped;
      } else if (!put_into(database, plan.key, plan.record)) {
        ++merge.outdated;
      } else {
        ++(is_new ? merge.added : merge.replaced);
      }
    }
    transaction.commit();
    return merge;
  });
}

std::int64_t PlanDatabase::erase_other_versions(std::string_view version) {
  return with_database(Purpose::read, std::int64_t{0}, [&](Database& database) {
    Statement statement = database.prepare("DELETE FROM plans WHERE version <> ?");
    statement.bind(0, version);
    statement.step();
    return database.changes();
  });
}

}   // namespace pumice::tune
