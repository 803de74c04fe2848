// The only file that includes SQLite.
#include "plan/store/database.hpp"

#include <sqlite3.h>

#include <algorithm>
#include <cstring>
#include <iterator>

#include <pumice/core/log.hpp>

#include "core/printable.hpp"

namespace pumice::tune {
namespace {

// Writing a plan takes milliseconds, so a queue of a thousand writers gets its turn.
constexpr int kBusyTimeout_ms = 10'000;

/// SQLite has no number of the system's for these when they happen in a commit.
bool is_failed_write(int code) {
  constexpr int kWrites[] = {SQLITE_FULL, SQLITE_IOERR_WRITE, SQLITE_IOERR_FSYNC,
                             SQLITE_IOERR_TRUNCATE, SQLITE_IOERR_SHMSIZE};
  return std::find(std::begin(kWrites), std::end(kWrites), code) != std::end(kWrites);
}

[[noreturn]] void raise(sqlite3* database, int code) {
  // Without a connection there was no memory for one.
  std::string text = sqlite3_errstr(code);
  if (database != nullptr) {
    text = sqlite3_errmsg(database);
    const int system_error = sqlite3_system_errno(database);
    const int kind = code & 0xff;
    if (system_error != 0 &&
        (kind == SQLITE_IOERR || kind == SQLITE_CANTOPEN || kind == SQLITE_FULL))
      text += std::string(": ") + std::strerror(system_error);
  }
  if (is_failed_write(code)) text += "; is the disk full?";
  const int kind = code & 0xff;
  // A statement of ours that does not compile means other tables than ours.
  const bool is_damaged = kind == SQLITE_CORRUPT || kind == SQLITE_NOTADB || kind == SQLITE_ERROR ||
                          kind == SQLITE_MISMATCH;
  throw DatabaseError(is_damaged ? DatabaseError::Kind::damaged : DatabaseError::Kind::other,
                      printable_message(text));
}

void expect(sqlite3* database, int code) {
  if (code != SQLITE_OK) raise(database, code);
}

/// As SQLite wants a name with parameters: a path of any bytes.
std::string uri_of(const std::filesystem::path& file) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string uri = "file:";
  for (const char letter : std::filesystem::absolute(file).string()) {
    const auto byte = static_cast<unsigned char>(letter);
    const bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                          (byte >= '0' && byte <= '9') || byte == '/' || byte == '.' ||
                          byte == '-' || byte == '_';
    if (is_plain) {
      uri += letter;
    } else {
      uri += {'%', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
  return uri;
}

int flags_of(Database::Access access) {
  // One thread at a time uses a connection.
  constexpr int kAlways = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  switch (access) {
    case Database::Access::create: return kAlways | SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    case Database::Access::write: return kAlways | SQLITE_OPEN_READWRITE;
    case Database::Access::read:
    case Database::Access::frozen: return kAlways | SQLITE_OPEN_READONLY;
  }
  PUMICE_ENSURES(false, "access ", static_cast<int>(access));
  return 0;
}

}   // namespace

Statement::Statement(sqlite3* database, const char* sql) : database_(database) {
  expect(database_, sqlite3_prepare_v2(database_, sql, -1, &statement_, nullptr));
}

Statement::~Statement() {
  sqlite3_finalize(statement_);   // what went wrong was said by the step
}

Statement& Statement::bind(int index, std::string_view text) {
  expect(database_, sqlite3_bind_text64(statement_, index + 1, text.data(), text.size(),
                                        SQLITE_TRANSIENT, SQLITE_UTF8));
  return *this;
}

Statement& Statement::bind(int index, std::int64_t number) {
  expect(database_, sqlite3_bind_int64(statement_, index + 1, number));
  return *this;
}

Statement& Statement::bind(int index, double number) {
  expect(database_, sqlite3_bind_double(statement_, index + 1, number));
  return *this;
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code != SQLITE_DONE) raise(database_, code);
  return false;
}

std::string Statement::text(int column) const {
  const auto* bytes = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  const auto size = static_cast<std::size_t>(sqlite3_column_bytes(statement_, column));
  return bytes == nullptr ? std::string() : std::string(bytes, size);
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}

Database::Database(const std::filesystem::path& file, Access access) {
  const std::string uri = uri_of(file) + (access == Access::frozen ? "?immutable=1" : "");
  const int code = sqlite3_open_v2(uri.c_str(), &database_, flags_of(access), nullptr);
  try {
    expect(database_, code);
    expect(database_, sqlite3_busy_timeout(database_, kBusyTimeout_ms));
    // What a file says of itself is not run: it may be somebody else's.
    expect(database_, sqlite3_db_config(database_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr));
    expect(database_, sqlite3_db_config(database_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr));
    expect(database_, sqlite3_db_config(database_, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr));
    expect(database_, sqlite3_db_config(database_, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr));
  } catch (...) {
    sqlite3_close(database_);   // no destructor follows
    throw;
  }
}

Database::~Database() {
  // Also copies what the write-ahead log holds into the file, if nobody else has it open.
  sqlite3_close(database_);
}

void Database::run(const char* sql) {
  expect(database_, sqlite3_exec(database_, sql, nullptr, nullptr, nullptr));
}

std::int64_t Database::number(const char* sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Database::text(const char* sql) {
  Statement statement = prepare(sql);
  return statement.step() ? statement.text(0) : std::string();
}

std::int64_t Database::changes() const {
  return sqlite3_changes(database_);
}

Transaction::Transaction(Database& database) : database_(database) {
  database_.run("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!is_open_) return;
  try {
    database_.run("ROLLBACK");
  } catch (const DatabaseError& error) {
    // After a failed write SQLite may have rolled back by itself; the failure itself was thrown.
    log(LogTopic::plan, std::string("ROLLBACK: ") + error.what());
  }
}

void Transaction::commit() {
  database_.run("COMMIT");
  is_open_ = false;
}

}   // namespace pumice::tune
