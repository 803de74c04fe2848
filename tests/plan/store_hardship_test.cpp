// A store among other processes, killed in the middle, without room, and with strange files in its
// place.
// Covers src/plan/store/plan_database.cpp and src/plan/store/set_aside.cpp.
#include <pumice/plan/store.hpp>

#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/random.hpp>

#include "plan/child_process.hpp"
#include "plan/store/database.hpp"
#include "plan/stored_plans.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::tune {
namespace {

using namespace test;
namespace fs = std::filesystem;

std::string content_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

class PlanStoreHardship : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const fs::path file_ = folder_ / "plans.sqlite";

  /// A store with two plans, closed again.
  void make_database() {
    PlanStore store(named(file_));
    store.put(key_of("p"), record_of("plan"));
    store.put(key_of("q"), record_of(std::string(60000, 'x')));   // several pages
  }

  /// At its default place the store begins anew, and what was there is kept under another name.
  void expect_set_aside(const std::string& why) {
    const bool is_folder = fs::is_directory(file_);
    const std::string before = is_folder ? "" : content_of(file_);
    PlanStore store(by_default(file_));
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(plan_in(store, key_of("p")), "none");
    const std::string said = ::testing::internal::GetCapturedStderr();
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_NE(said.find("It was renamed to"), std::string::npos) << said;
    const fs::path aside = file_.string() + ".aside-1";
    EXPECT_EQ(fs::is_directory(aside), is_folder);
    if (!is_folder) {
      EXPECT_EQ(content_of(aside), before);
    }
    EXPECT_EQ(store.put(key_of("p"), record_of("new")), Put::stored);
    EXPECT_EQ(plan_in(store, key_of("p")), "new");
  }

  /// A file that the user named is refused, and stays as it is.
  void expect_refused(const std::string& why) {
    const std::string before = fs::is_directory(file_) ? "" : content_of(file_);
    PlanStore store(named(file_));
    for (const std::string& message :
         {message_of([&] { store.find(key_of("p")); }),
          message_of([&] { store.put(key_of("p"), record_of("new")); }),
          message_of([&] { store.list(); })}) {
      EXPECT_NE(message.find("PUMICE_PLANS = "), std::string::npos) << message;
      EXPECT_NE(message.find(why), std::string::npos) << message;
    }
    if (!fs::is_directory(file_)) {
      EXPECT_EQ(content_of(file_), before);
    }
    EXPECT_EQ(folder_.files(), 1);
  }
};

TEST_F(PlanStoreHardship, SeveralProcessesWriteAtOnce) {
  constexpr int kProcesses = 4;
  constexpr int kPlans = 25;
  std::vector<pid_t> children;
  for (int process = 0; process < kProcesses; ++process) {
    const pid_t child = fork();
    if (child == 0) {
      PlanStore store(named(file_));   // all of them find no file, and make it
      int failures = 0;
      for (int i = 0; i < kPlans; ++i) {
        const std::string name = std::to_string(process) + "." + std::to_string(i);
        failures += store.put(key_of(name), record_of(name)) == Put::stored ? 0 : 1;
        failures += plan_in(store, key_of(name)) == name ? 0 : 1;
      }
      _exit(failures == 0 ? 0 : 1);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  EXPECT_EQ(PlanStore(named(file_)).list().size(), std::size_t{kProcesses * kPlans});
}

/// The child says a number when its plan was stored; what it said has to be there.
TEST_F(PlanStoreHardship, AKilledProcessLosesNothingThatWasStored) {
  Random random(1);
  constexpr int kKills = 30;
  constexpr int kPlans = 20;   // more kills where the disk is slow, so that some fall between plans
  int said = -1;
  for (int kills = 0; kills < kKills || (said < kPlans && kills < 10 * kKills); ++kills) {
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    const int begin = said + 1;
    const pid_t child = fork();
    if (child == 0) {
      PlanStore store(by_default(file_));
      for (int i = begin;; ++i) {
        const bool is_stored =
            store.put(key_of(std::to_string(i)), record_of(std::to_string(i))) == Put::stored;
        if (is_stored && write(ends[1], &i, sizeof i) != ssize_t{sizeof i}) _exit(1);
      }
    }
    close(ends[1]);
    std::this_thread::sleep_for(std::chrono::microseconds(random.integer(0, 150'000)));
    ::kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    for (int number = 0; read(ends[0], &number, sizeof number) == ssize_t{sizeof number};)
      said = number;
    close(ends[0]);
  }
  ASSERT_GE(said, kPlans);
  PlanStore store(named(file_));
  for (int i = 0; i <= said; ++i)
    EXPECT_EQ(plan_in(store, key_of(std::to_string(i))), std::to_string(i));
  for (const auto& entry : fs::directory_iterator(folder_.path()))
    EXPECT_EQ(entry.path().string().find("aside"), std::string::npos) << entry.path();
}

TEST_F(PlanStoreHardship, AFullDiskIsSaidAndEverythingStoredIsStillFound) {
  const std::string said = said_by_child([&]() -> std::string {
    constexpr rlim_t kBytes = 100'000;
    const rlimit limit{kBytes, kBytes};
    signal(SIGXFSZ, SIG_IGN);   // the write fails instead
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return "no limit";
    PlanStore store(named(file_));
    int stored = 0;
    while (store.put(key_of(std::to_string(stored)), record_of(std::string(3000, 'x'))) ==
           Put::stored)
      ++stored;
    if (stored < 3) return "only " + std::to_string(stored) + " were stored";
    if (store.problem().find("is the disk full?") == std::string::npos) return store.problem();
    store.refresh();
    for (int i = 0; i < stored; ++i) {
      if (plan_in(store, key_of(std::to_string(i))) == "none") return "one is gone";
    }
    return std::to_string(stored);
  });
  ASSERT_FALSE(said.empty());
  EXPECT_EQ(said.find_first_not_of("0123456789"), std::string::npos) << said;
  PlanStore store(named(file_));
  EXPECT_EQ(std::to_string(store.list().size()), said);
  EXPECT_EQ(store.put(key_of("p"), record_of("plan")), Put::stored);   // there is room again
}

TEST_F(PlanStoreHardship, InAFolderThatMayNotBeWrittenPlansAreFoundAndStoringWarnsOnce) {
  make_database();
  ASSERT_EQ(chmod(file_.c_str(), 0444), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);
  const std::string said = said_by_child([&]() -> std::string {
    give_up_privileges();
    PlanStore store(named(file_));
    if (plan_in(store, key_of("p")) != "plan") return "not found: " + store.problem();
    ::testing::internal::CaptureStderr();
    for (int i = 0; i < 3; ++i) {
      if (store.put(key_of("r"), record_of("plan")) != Put::not_written) return "written";
    }
    if (plan_in(store, key_of("q")) == "none") return "not found after a put";
    return ::testing::internal::GetCapturedStderr();
  });
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  const std::string sentence = "tuned plans are not stored: ";
  const auto at = said.find(sentence);
  ASSERT_NE(at, std::string::npos) << said;
  EXPECT_EQ(said.find(sentence, at + 1), std::string::npos) << said;
  EXPECT_NE(said.find("read-only"), std::string::npos) << said;
  EXPECT_EQ(folder_.files(), 1);
}

TEST_F(PlanStoreHardship, AChildAfterAForkStoresBesideItsParent) {
  PlanStore store(named(file_));
  store.put(key_of("before"), record_of("plan"));
  std::atomic<bool> is_over{false};
  std::thread busy([&] {   // forks fall into its calls
    for (int i = 0; !is_over; ++i)
      store.put(key_of("busy " + std::to_string(i % 10)), record_of("plan", 1000 + i));
  });
  for (int i = 0; i < 10; ++i) {
    const std::string name = "child " + std::to_string(i);
    EXPECT_EQ(said_by_child([&]() -> std::string {
                if (plan_in(store, key_of("before")) != "plan") return "not found";
                return store.put(key_of(name), record_of("plan")) == Put::stored ? "stored" : "not";
              }),
              "stored");
  }
  is_over = true;
  busy.join();
  store.refresh();
  for (int i = 0; i < 10; ++i)
    EXPECT_EQ(plan_in(store, key_of("child " + std::to_string(i))), "plan");
}

TEST_F(PlanStoreHardship, ATextInItsPlace) {
  write_text(file_, "Not a database, but a text that somebody may need.\n");
  expect_refused("is no database");
  expect_set_aside("is no database");
}

TEST_F(PlanStoreHardship, ADatabaseOfAnotherProgram) {
  Database(file_, Database::Access::create).run("CREATE TABLE plans(device TEXT)");
  expect_refused("is a database of another program");
  expect_set_aside("is a database of another program");
}

TEST_F(PlanStoreHardship, ADatabaseOfANewerPumice) {
  make_database();
  Database(file_, Database::Access::write).run("PRAGMA user_version = 2");
  expect_refused("was written by a newer Pumice, with schema 2 where this one knows 1");
  expect_set_aside("was written by a newer Pumice");
}

TEST_F(PlanStoreHardship, AFolder) {
  fs::create_directory(file_);
  write_text(file_ / "inside", "kept");
  expect_refused("is a folder");
  expect_set_aside("is a folder");
  EXPECT_EQ(content_of(fs::path(file_.string() + ".aside-1") / "inside"), "kept");
}

/// A damaged file of ours is no reason to stop, wherever it is.
TEST_F(PlanStoreHardship, AFileThatIsCut) {
  make_database();
  const auto whole = fs::file_size(file_);
  fs::resize_file(file_, whole / 2);
  expect_set_aside("is damaged");
  fs::remove_all(file_);
  make_database();
  fs::resize_file(file_, whole / 2);
  PlanStore store(named(file_));
  EXPECT_EQ(store.put(key_of("p"), record_of("new")), Put::stored);
  EXPECT_EQ(plan_in(store, key_of("p")), "new");
  EXPECT_TRUE(fs::exists(file_.string() + ".aside-2"));
}

TEST_F(PlanStoreHardship, BytesThatWereOverwritten) {
  make_database();
  const std::string good = content_of(file_);
  Random random(2);
  for (int trial = 0; trial < 60; ++trial) {
    std::string bytes = good;
    for (int i = 0; i < 1 + trial % 20; ++i) {
      const auto at = static_cast<std::size_t>(
          random.integer(0, trial % 2 == 0 ? 8191 : static_cast<std::int64_t>(good.size()) - 1));
      bytes[at] = static_cast<char>(random.bits());
    }
    write_text(file_, bytes);
    PlanStore store(by_default(file_));
    (void)plan_in(store, key_of("p"));   // whatever can still be read
    EXPECT_NE(store.put(key_of("r"), record_of("new")), Put::not_written) << store.problem();
    EXPECT_EQ(plan_in(store, key_of("r")), "new");
    for (const auto& entry : fs::directory_iterator(folder_.path()))
      fs::remove_all(entry.path());
  }
}

TEST_F(PlanStoreHardship, AnEmptyFileIsWhereADatabaseBegins) {
  write_text(file_, "");
  PlanStore store(named(file_));
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  EXPECT_EQ(store.put(key_of("p"), record_of("plan")), Put::stored);
  EXPECT_EQ(folder_.files(), 1);
}

TEST_F(PlanStoreHardship, AFileThatMayNotBeRead) {
  make_database();
  ASSERT_EQ(chmod(file_.c_str(), 0), 0);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
  EXPECT_NE(said_by_child([&] {
              give_up_privileges();
              PlanStore store(named(file_));
              return message_of([&] { store.find(key_of("p")); });
            }).find("cannot be read: Permission denied"),
            std::string::npos);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0555), 0);   // it cannot be renamed either
  EXPECT_NE(said_by_child([&]() -> std::string {
              give_up_privileges();
              PlanStore store(by_default(file_));
              if (plan_in(store, key_of("p")) != "none") return "found";
              return store.problem();
            }).find("tuned plans are not read: "),
            std::string::npos);
  ASSERT_EQ(chmod(folder_.path().c_str(), 0755), 0);
}

TEST_F(PlanStoreHardship, ADefaultFolderThatEveryoneMayWriteIsNotUsed) {
  ASSERT_EQ(chmod(folder_.path().c_str(), 0777), 0);
  PlanStore store(by_default(file_));
  EXPECT_EQ(store.put(key_of("p"), record_of("plan")), Put::not_written);
  EXPECT_NE(store.problem().find("everyone may write there"), std::string::npos);
  EXPECT_EQ(folder_.files(), 0);
}

TEST_F(PlanStoreHardship, AFileThatIsRemovedMeanwhileIsMadeAgain) {
  PlanStore store(named(file_));
  store.put(key_of("p"), record_of("plan"));
  fs::remove(file_);
  EXPECT_EQ(store.put(key_of("q"), record_of("plan")), Put::stored);
  EXPECT_EQ(PlanStore(named(file_)).list().size(), 1u);
}

/// Rows are not believed either.
TEST_F(PlanStoreHardship, RowsThatAreNoPlansAreLeftOut) {
  make_database();
  Database(file_, Database::Access::write)
      .run(
          "INSERT INTO plans VALUES('NVIDIA H200', '0.1.0', 'convolution', 'forward', 'p', 34,"
          "-1000, 'negative', -1, 1, 2, 3, 4), ('NVIDIA H200', '0.1.0', 'convolution', 'forward', "
          "'r', 33, -1000, x'00ff', 'text', 1, 0.5, 3, 4)");
  PlanStore store(named(file_));
  EXPECT_EQ(store.list().size(), 2u);
  EXPECT_EQ(plan_in(store, key_of("p", 34)), "plan");
  EXPECT_EQ(plan_in(store, key_of("r")), "none");
}

}   // namespace
}   // namespace pumice::tune
