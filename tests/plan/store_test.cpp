// What a store answers, which of two plans stays, and that its answers change when it says so.
#include <pumice/plan/store.hpp>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <stdlib.h>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "plan/child_process.hpp"
#include "plan/stored_plans.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::tune {
namespace {

using namespace test;
namespace fs = std::filesystem;

class PlanStoreTest : public ::testing::Test {
 protected:
  const TemporaryFolder folder_;
  const fs::path file_ = folder_ / "plans.sqlite";
};

TEST_F(PlanStoreTest, FindsWhatWasPut) {
  PlanStore store(named(file_));
  EXPECT_EQ(store.put(key_of("16 to 32"), record_of("implicit_gemm/64")), Put::stored);
  const auto found = store.find(key_of("16 to 32"));
  ASSERT_TRUE(found);
  EXPECT_EQ(found->record, record_of("implicit_gemm/64"));
  EXPECT_EQ(found->key, key_of("16 to 32"));
  EXPECT_FALSE(found->is_shipped);
  EXPECT_EQ(plan_in(store, key_of("16 to 64")), "none");
  PlanKey other = key_of("16 to 32");
  other.version = "0.2.0";
  EXPECT_EQ(plan_in(store, other), "none");
  PlanStore later(named(file_));
  EXPECT_EQ(plan_in(later, key_of("16 to 32")), "implicit_gemm/64");
}

TEST_F(PlanStoreTest, LookingForAPlanMakesNoFile) {
  PlanStore store(by_default(folder_.path() / "pumice" / "plans.sqlite"));
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  EXPECT_TRUE(store.list().empty());
  EXPECT_EQ(store.erase_other_versions("0.1.0"), 0);
  EXPECT_EQ(folder_.files(), 0);
  EXPECT_EQ(store.put(key_of("p"), record_of("plan")), Put::stored);   // makes the folder too
  EXPECT_EQ(plan_in(store, key_of("p")), "plan");
}

TEST_F(PlanStoreTest, LeavesOneFileBehind) {
  PlanStore store(named(file_));
  store.put(key_of("p"), record_of("plan"));
  store.find(key_of("q"));
  EXPECT_EQ(folder_.files(), 1);
}

TEST_F(PlanStoreTest, TheNewestMeasurementStays) {
  PlanStore store(named(file_));
  EXPECT_EQ(store.put(key_of("p"), record_of("second", 2000)), Put::stored);
  EXPECT_EQ(store.put(key_of("p"), record_of("first", 1000)), Put::outdated);
  EXPECT_EQ(plan_in(store, key_of("p")), "second");
  EXPECT_EQ(store.put(key_of("p"), record_of("third", 3000)), Put::stored);
  EXPECT_EQ(plan_in(store, key_of("p")), "third");
  PlanRecord surer = record_of("surer", 3000);
  surer.confidence = 0.999;
  EXPECT_EQ(store.put(key_of("p"), surer), Put::stored);
  EXPECT_EQ(store.put(key_of("p"), record_of("third", 3000)), Put::outdated);
  EXPECT_EQ(store.put(key_of("p"), record_of("now", 0)), Put::stored);
  EXPECT_EQ(store.list().size(), 1u);
}

TEST_F(PlanStoreTest, PlansOfOtherBucketsStayBesideEachOther) {
  PlanStore store(named(file_));
  PlanKey dense = key_of("p");
  dense.density_bucket = 9;
  store.put(key_of("p"), record_of("without"));
  store.put(dense, record_of("dense"));
  store.put(key_of("p", 40), record_of("large"));
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_EQ(plan_in(store, dense), "dense");
  EXPECT_EQ(plan_in(store, key_of("p")), "without");
  EXPECT_EQ(plan_in(store, key_of("p", 39)), "large");
}

TEST_F(PlanStoreTest, SeveralPlansAreStoredAtOnceOrNotAtAll) {
  PlanStore store(named(file_));
  std::vector<StoredPlan> plans{{.key = key_of("p"), .record = record_of("p")},
                                {.key = key_of("q"), .record = record_of("q")}};
  EXPECT_EQ(store.put_all(plans), Put::stored);
  EXPECT_EQ(plan_in(store, key_of("q")), "q");
  EXPECT_EQ(store.put_all(plans), Put::outdated);
  plans[0].record = record_of("newer", 2000);
  plans[1].record.tuned_s = -1;
  EXPECT_NE(message_of([&] { store.put_all(plans); }).find("tuned_s = -1"), std::string::npos);
  EXPECT_EQ(plan_in(store, key_of("p")), "p");
}

TEST_F(PlanStoreTest, TheGenerationChangesWithTheAnswersAndOnlyThen) {
  PlanStore store(named(file_));
  std::uint64_t before = store.generation();
  const auto changed = [&] { return std::exchange(before, store.generation()) != before; };
  store.find(key_of("p"));
  EXPECT_FALSE(changed());
  store.put(key_of("p"), record_of("plan"));
  EXPECT_TRUE(changed());
  EXPECT_EQ(plan_in(store, key_of("p")), "plan");   // and not the "none" that was remembered
  store.put(key_of("p"), record_of("older", 500));
  EXPECT_FALSE(changed());
  store.export_to(folder_ / "table.json");
  EXPECT_FALSE(changed());
  store.merge(read_plan_table(folder_ / "table.json"));   // nothing new
  EXPECT_FALSE(changed());
  EXPECT_EQ(store.erase_other_versions("0.1.0"), 0);
  EXPECT_FALSE(changed());
  EXPECT_EQ(store.erase_other_versions("0.2.0"), 1);
  EXPECT_TRUE(changed());
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  store.merge(read_plan_table(folder_ / "table.json"));
  EXPECT_TRUE(changed());
  store.refresh();
  EXPECT_TRUE(changed());
}

TEST_F(PlanStoreTest, WhatAnotherProcessStoresIsSeenAfterRefresh) {
  PlanStore store(named(file_));
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  PlanStore other(named(file_));
  other.put(key_of("p"), record_of("plan"));
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  store.refresh();
  EXPECT_EQ(plan_in(store, key_of("p")), "plan");
}

TEST_F(PlanStoreTest, MergingIsTheSameInAnyOrder) {
  std::vector<fs::path> tables;
  for (int i = 0; i < 3; ++i) {
    PlanStore source(named(folder_ / ("source" + std::to_string(i))));
    source.put(key_of("all"), record_of("plan " + std::to_string(i), 1000 + i % 2));
    source.put(key_of("only " + std::to_string(i)), record_of("own"));
    tables.push_back(folder_ / ("table" + std::to_string(i) + ".json"));
    EXPECT_EQ(source.export_to(tables.back()), 2);
  }
  std::vector<StoredPlan> first;
  do {
    const fs::path target = folder_ / "target";
    fs::remove(target);
    PlanStore store(named(target));
    Merge sum;
    for (const fs::path& table : tables) {
      const Merge merge = store.merge(read_plan_table(table));
      sum.added += merge.added;
      sum.replaced += merge.replaced;
      sum.outdated += merge.outdated;
    }
    EXPECT_EQ(sum.added, 4);
    EXPECT_EQ(sum.replaced + sum.outdated, 2);
    if (first.empty()) first = store.list();
    EXPECT_EQ(store.list(), first);
    EXPECT_EQ(plan_in(store, key_of("all")), "plan 1");
  } while (std::next_permutation(tables.begin(), tables.end()));
}

TEST_F(PlanStoreTest, MergeTakesAllOfATableOrNothing) {
  PlanStore store(named(file_));
  store.put(key_of("p"), record_of("plan"));
  store.put(key_of("q"), record_of("plan"));
  store.export_to(folder_ / "good.json");
  std::ifstream good(folder_ / "good.json");
  std::string text{std::istreambuf_iterator<char>(good), {}};
  text.replace(text.rfind("\"samples\":40"), 12, "\"samples\":\"\"");   // of the second
  std::ofstream(folder_ / "bad.json") << text;
  EXPECT_NE(message_of([&] {
              read_plan_table(folder_ / "bad.json");
            }).find("bad.json: plan 2: samples is not a whole number"),
            std::string::npos);
  std::vector<StoredPlan> plans = read_plan_table(folder_ / "good.json");
  plans[1].record.samples = -1;
  PlanStore other(named(folder_ / "other"));
  EXPECT_NE(message_of([&] { other.merge(plans); }).find("samples = -1"), std::string::npos);
  plans[1].record.samples = 1;
  plans[1].key.problem.clear();
  EXPECT_NE(message_of([&] { other.merge(plans); }).find("problem is empty"), std::string::npos);
  EXPECT_TRUE(other.list().empty());
}

TEST_F(PlanStoreTest, PlansOfTheFutureAreSkippedAndRefused) {
  PlanStore store(named(file_));
  EXPECT_NE(message_of([&] {
              store.put(key_of("p"), record_of("plan", 4'000'000'000'000));
            }).find("more than a day from now"),
            std::string::npos);
  std::ofstream(folder_ / "future.json")
      << R"({"format": "pumice plans", "schema": 1, "plans": [{"device": "d", "version": "v",
         "operation": "o", "direction": "f", "problem": "p", "rows_bucket": 3,
         "density_bucket": null, "plan": "x", "tuned_s": 1, "untuned_s": 2, "confidence": 0.9,
         "samples": 3, "measured": "2199-01-01T00:00:00.000Z"}]})";
  EXPECT_EQ(store.merge(read_plan_table(folder_ / "future.json")).skipped, 1);
  EXPECT_TRUE(store.list().empty());
}

TEST_F(PlanStoreTest, ShippedTablesAnswerWhereTheUserHasNothing) {
  fs::create_directory(folder_ / "shipped");
  {
    PlanStore source(named(folder_ / "source"));
    source.put(key_of("p"), record_of("shipped p", 9000));
    source.put(key_of("q"), record_of("shipped q"));
    source.export_to(folder_ / "shipped/h200.json");
  }
  std::ofstream(folder_ / "shipped/broken.json") << "no table";
  std::ofstream(folder_ / "shipped/notes.txt") << "not read";
  PlanStore::Places places = named(file_);
  places.shipped_folders = {folder_ / "absent", folder_ / "shipped"};
  PlanStore store(places);
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(plan_in(store, key_of("p")), "shipped p");
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("broken.json"), std::string::npos) << said;
  EXPECT_EQ(said.find("notes.txt"), std::string::npos) << said;
  EXPECT_TRUE(store.find(key_of("p"))->is_shipped);
  store.put(key_of("p"), record_of("the user's", 1000));
  EXPECT_EQ(plan_in(store, key_of("p")), "the user's");
  EXPECT_EQ(plan_in(store, key_of("q")), "shipped q");
  EXPECT_EQ(store.list().size(), 3u);
  EXPECT_EQ(store.export_to(folder_ / "mine.json"), 1);
}

TEST_F(PlanStoreTest, RefusesWhatIsNoPlan) {
  PlanStore store(named(file_));
  EXPECT_NE(message_of([&] {
              store.put(key_of(""), record_of("plan"));
            }).find("key of a plan: problem is empty"),
            std::string::npos);
  EXPECT_NE(message_of([&] {
              store.put(key_of("p"), record_of(""));
            }).find("record of a plan: plan is empty"),
            std::string::npos);
  EXPECT_NE(message_of([&] { store.find(key_of("")); }).find("problem is empty"),
            std::string::npos);
}

TEST_F(PlanStoreTest, WithoutAPlaceNothingIsKeptAndNothingBreaks) {
  PlanStore store(by_default(""));
  EXPECT_EQ(store.put(key_of("p"), record_of("plan")), Put::not_written);
  EXPECT_EQ(plan_in(store, key_of("p")), "none");
  EXPECT_TRUE(store.list().empty());
  EXPECT_NE(message_of([&] {
              store.merge({{.key = key_of("p"), .record = record_of("plan")}});
            }).find("no place to keep 1 plans; name a file in PUMICE_PLANS"),
            std::string::npos);
}

TEST_F(PlanStoreTest, ThreadsUseOneStore) {
  PlanStore store(named(file_));
  constexpr int kThreads = 6;
  constexpr int kPlans = 20;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kPlans; ++i) {
        const std::string name = std::to_string(thread) + "." + std::to_string(i);
        if (store.put(key_of(name), record_of(name)) != Put::stored) ++wrong;
        if (plan_in(store, key_of(name)) != name) ++wrong;
        store.find(key_of(std::to_string((thread + 1) % kThreads) + "." + std::to_string(i)));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(store.list().size(), std::size_t{kThreads * kPlans});
}

TEST_F(PlanStoreTest, AVariableNamesTheFileOfTheProcess) {
  EXPECT_EQ(said_by_child([&] {
              setenv("PUMICE_PLANS", file_.c_str(), 1);
              return process_plans().database().string();
            }),
            file_.string());
  EXPECT_EQ(said_by_child([&] {
              unsetenv("PUMICE_PLANS");
              setenv("PUMICE_CACHE", folder_.path().c_str(), 1);
              return process_plans().database().string();
            }),
            (folder_ / "plans-v1.sqlite").string());
  EXPECT_EQ(folder_.files(), 0);   // not opened
}

}   // namespace
}   // namespace pumice::tune
