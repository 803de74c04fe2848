// The user's plans in their file: when it is opened, what is done where it is not what it should
// be.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <pumice/plan/store.hpp>

#include "plan/store/database.hpp"

namespace pumice::tune {

/// For one thread at a time. Calls throw DatabaseError or filesystem_error for what the disk or
/// permissions prevent, and UserError where the user named a file that is in the way.
class PlanDatabase {
 public:
  PlanDatabase(std::filesystem::path file, bool is_default);

  /// Plans whose texts agree with those of `key`.
  std::vector<StoredPlan> agreeing(const PlanKey& key);
  std::vector<StoredPlan> all();
  /// All of them in one transaction.
  Merge merge(const std::vector<StoredPlan>& plans);
  std::int64_t erase_other_versions(std::string_view version);

 private:
  enum class Purpose : unsigned char { read, write };
  struct Look;

  /// Runs `action` on the database, which is open as long as that takes. Where it turns out to be
  /// damaged, once more on what is there after that was set aside. `otherwise` where there is no
  /// database to read.
  template <class Result, class Action>
  Result with_database(Purpose purpose, Result otherwise, Action&& action);

  Look opened(Purpose purpose);
  Look look();
  void clear_the_way(const Look& found);
  void create();

  std::filesystem::path file_;
  bool is_default_;
  std::uint64_t checked_inode_ = 0;   // of the file that was read whole and found in order
};

}   // namespace pumice::tune
