// SQLite behind a few calls: connections, statements, and errors with their kind.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include <pumice/core/error.hpp>

struct sqlite3;
struct sqlite3_stmt;

namespace pumice::tune {

/// What SQLite refused, in its words and the system's.
class DatabaseError : public Error {
 public:
  enum class Kind : unsigned char {
    damaged,   // the file is no database, or not whole
    other,     // the disk, permissions, another process that holds it for too long
  };
  DatabaseError(Kind kind, const std::string& text) : Error(text), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

/// A statement being run. Columns and parameters count from 0.
class Statement {
 public:
  Statement(sqlite3* database, const char* sql);
  ~Statement();
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;

  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::int64_t number);
  Statement& bind(int index, double number);
  /// Whether there is a row; the last call returns false.
  bool step();
  std::string text(int column) const;
  std::int64_t integer(int column) const;
  double real(int column) const;

 private:
  sqlite3* database_;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  enum class Access : unsigned char {
    create,   // makes the file where there is none
    write,
    read,
    frozen,   // reads where no lock file can be made: nobody may write meanwhile
  };
  Database(const std::filesystem::path& file, Access access);
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Statements without parameters, whose rows do not matter.
  void run(const char* sql);
  /// The only number or text that `sql` selects.
  std::int64_t number(const char* sql);
  std::string text(const char* sql);
  Statement prepare(const char* sql) { return {database_, sql}; }
  /// Rows that the last statement changed.
  std::int64_t changes() const;

 private:
  sqlite3* database_ = nullptr;
};

/// Everything in it happens, or nothing: without `commit` it is rolled back.
class Transaction {
 public:
  explicit Transaction(Database& database);
  ~Transaction();
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;

  void commit();

 private:
  Database& database_;
  bool is_open_ = true;
};

}   // namespace pumice::tune
