// Plans that were measured once, kept for every later process of the user.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace pumice::tune {

/// What a plan was measured for. Texts are ASCII, the caller's own, and compared as they are.
struct PlanKey {
  std::string device;      // "NVIDIA H200", or a description of the CPU and its threads
  std::string version;     // of the library
  std::string operation;   // "convolution"
  std::string direction;   // "forward"
  std::string problem;     // channels, types, offsets, numerics …, always written the same way
  int rows_bucket = 0;
  std::optional<int> density_bucket{};   // nothing where pairs are not known, as on a device

  friend bool operator==(const PlanKey&, const PlanKey&) = default;
};

/// Half octaves: the logarithm to base 2, times 2, rounded. 0 for no rows and for one.
int rows_bucket(std::int64_t rows);
/// The same of pairs per output row; what is below 1/16 counts as that.
int density_bucket(double pairs_per_row);

struct PlanRecord {
  std::string plan;
  double tuned_s = 0;
  double untuned_s = 0;
  double confidence = 0;   // that tuned is faster, from 0 to 1
  std::int64_t samples = 0;
  std::int64_t measured_ms = 0;   // UTC, since 1970; 0 in `put` means now

  friend bool operator==(const PlanRecord&, const PlanRecord&) = default;
};

struct StoredPlan {
  PlanKey key;   // that it was measured for: a look-up may have asked for another bucket
  PlanRecord record;
  bool is_shipped = false;   // came with the library, not from the user's database

  friend bool operator==(const StoredPlan&, const StoredPlan&) = default;
};

/// A table of plans in a file, as JSON with a plan a line: what a store exports and takes in, and
/// what `pumice tune --out` writes. UserError where it cannot be written.
void write_plan_table(const std::filesystem::path& file, const std::vector<StoredPlan>& plans);
/// UserError that names file, entry and field where it is no table of plans.
std::vector<StoredPlan> read_plan_table(const std::filesystem::path& file);

enum class Put : unsigned char {
  stored,
  outdated,      // what is there was measured later
  not_written,   // the database cannot be written: a warning said why, once
};

struct Merge {
  std::int64_t added = 0;
  std::int64_t replaced = 0;
  std::int64_t outdated = 0;
  std::int64_t skipped = 0;   // dated more than a day from now: a clock was wrong
};

/// A database of plans in one file, below it tables that were shipped with the library. Nothing is
/// opened before it is asked for, and no file is made before something is stored. Any number of
/// threads may use one store, and any number of processes one file; a process that is killed loses
/// nothing that was stored. A child after `fork` opens the file anew.
///
/// Of two plans for one key the one that was measured later stays; of the same millisecond the one
/// with more confidence, then with more samples. The order of writing does not matter, so that
/// merging tables in any order gives the same.
///
/// What is in the way of the database: a file of ours that is damaged is renamed, to
/// "<name>.aside-1" and so on, with a warning, and never removed. What is not ours (a text, another
/// program's database, a folder), what a newer Pumice wrote, and what cannot be read is renamed
/// where the store is at its default place; where the user named the file, each call is a UserError
/// and the file stays. Where nothing can be written (a read-only folder, a full disk) plans are
/// found as before, and storing warns once.
class PlanStore {
 public:
  struct Places {
    std::filesystem::path database;   // empty: nothing is kept
    bool is_default = false;          // not named by the user
    /// Tables as `export_to` writes them: all *.json files in these folders.
    std::vector<std::filesystem::path> shipped_folders{};
  };

  explicit PlanStore(Places places);
  ~PlanStore();
  PlanStore(const PlanStore&) = delete;
  PlanStore& operator=(const PlanStore&) = delete;

  /// Among plans that agree in all texts, and are at most 4 half octaves away in rows, and in
  /// density where both know it: the nearest in rows, the larger of two as near; then the nearest
  /// in density; then the one measured last. Asked with a density, a plan without one counts as 2
  /// half octaves away; asked without, plans without come first. The user's database is asked
  /// first, and what was shipped only where that has nothing.
  std::optional<StoredPlan> find(const PlanKey& key);

  Put put(const PlanKey& key, const PlanRecord& record);
  /// Several at once, which takes no longer than one: all are written, or none. `outdated` where
  /// none of them was newer.
  Put put_all(const std::vector<StoredPlan>& plans);

  /// All plans, ordered by key: the user's, then those that were shipped.
  std::vector<StoredPlan> list();
  bool is_empty() { return list().empty(); }
  /// Removes the user's plans of all versions but this one, and returns how many.
  std::int64_t erase_other_versions(std::string_view version);

  /// The user's plans as JSON; returns how many. UserError where the file cannot be written.
  std::int64_t export_to(const std::filesystem::path& file);
  /// Takes in the plans of a table, all of them or none. UserError for a key or a record that no
  /// table has, and where they cannot be stored.
  Merge merge(const std::vector<StoredPlan>& plans);

  /// Changes whenever this store's answers may: after `put`, `merge`, `erase_other_versions` and
  /// `refresh`. Who keeps answers keeps this number with them.
  std::uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
  /// Answers are remembered in memory; what other processes stored since then is seen after this.
  void refresh();

  /// What last kept the store from reading or writing, in a sentence; empty where nothing did.
  std::string problem() const;
  const std::filesystem::path& database() const { return places_.database; }

 private:
  class Content;

  Places places_;
  std::atomic<std::uint64_t> generation_{1};
  std::unique_ptr<Content> content_;
};

/// The process's store: PUMICE_PLANS names its file ("off": nothing is read or kept), else it is
/// plans-v1.sqlite in PUMICE_CACHE, $XDG_CACHE_HOME/pumice or ~/.cache/pumice; shipped tables lie
/// where the library was installed, in plans/.
PlanStore& process_plans();

}   // namespace pumice::tune
