// What `choose` takes before its rules: a book that is open, else the store of the process.
#include <pumice/plan/plan_book.hpp>

#include <cstdlib>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>
#include <pumice/core/parallel.hpp>
#include <pumice/plan/choose.hpp>

#include "plan/child_process.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice {
namespace {

using test::message_of;
using test::said_by_child;

ConvolutionProblem some_layer() {
  return {.in_rows = 4000,
          .out_rows = 4000,
          .pairs = 30000,
          .offsets = 27,
          .in_channels = 16,
          .out_channels = 32,
          .dtype = DType::f32};
}

const Target& here() {
  return target_of(Device{});
}

PlanPtr other_plan() {
  return std::make_shared<const ConvolutionPlan>(
      ConvolutionPlan{.dataflow = Dataflow::implicit_gemm, .tile_rows = 96, .sort_by_mask = true});
}

std::shared_ptr<const PlanBook> book_with(const ConvolutionProblem& problem, PlanPtr plan) {
  auto book = std::make_shared<PlanBook>();
  book->set(problem, here(), std::move(plan));
  return book;
}

TEST(PlanBookTest, is_asked_before_the_rules_as_long_as_its_scope_lives) {
  const PlanPtr given = other_plan();
  const PlanPtr ruled = choose_by_rules(some_layer(), here());
  {
    const PlanBookScope scope(book_with(some_layer(), given));
    EXPECT_EQ(choose(some_layer(), here()), given);
    EXPECT_EQ(choose(some_layer(), here()), given) << "remembered";
  }
  EXPECT_TRUE(choose(some_layer(), here())->runs_like(*ruled));
}

tune::StoredPlan stored_for(const ConvolutionProblem& problem, const ConvolutionPlan& plan) {
  return {.key = key_of(problem, here()),
          .record = {.plan = to_text(plan), .tuned_s = 1, .untuned_s = 2, .measured_ms = 1}};
}

TEST(PlanBookTest, of_a_table_has_what_was_written_into_it) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "table.json";
  tune::write_plan_table(file, {stored_for(some_layer(), *other_plan())});
  const auto book = std::make_shared<const PlanBook>(PlanBook::of(tune::read_plan_table(file)));
  EXPECT_EQ(book->size(), 1u);
  const PlanBookScope scope(book);
  EXPECT_TRUE(choose(some_layer(), here())->runs_like(*other_plan()));
  EXPECT_NE(choose(some_layer(), here())->reason.find("0.5 times"), std::string::npos);
}

TEST(PlanBookTest, tables_are_read_unless_a_plan_of_this_version_is_none) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "table.json";
  std::vector<tune::StoredPlan> plans{stored_for(some_layer(), *other_plan()),
                                      stored_for(some_layer(), *other_plan())};
  tune::write_plan_table(file, plans);
  EXPECT_EQ(read_plans(file), plans);
  plans[1].record.plan = R"({"dataflow":"nope"})";
  tune::write_plan_table(file, plans);
  const std::string said = message_of([&] { read_plans(file); });
  EXPECT_NE(said.find("table.json: plan 2: "), std::string::npos) << said;
  EXPECT_NE(said.find("dataflow"), std::string::npos) << said;
  plans[1].key.version = "another";   // which may have had such a dataflow
  tune::write_plan_table(file, plans);
  EXPECT_EQ(read_plans(file), plans);
}

TEST(PlanBookTest, of_a_table_refuses_a_plan_that_does_not_fit_when_it_is_asked_for) {
  ConvolutionPlan split = *other_plan();
  split.splits = 9;
  const PlanBookScope scope(
      std::make_shared<const PlanBook>(PlanBook::of({stored_for(some_layer(), split)})));
  EXPECT_NE(message_of([] { choose(some_layer(), here()); }).find("splits = 9"), std::string::npos);
  ConvolutionProblem other = some_layer();
  other.out_channels = 48;
  EXPECT_TRUE(choose(other, here())->runs_like(*choose_by_rules(other, here())));
}

TEST(PlanBookTest, has_plans_for_problems_that_are_near) {
  const PlanBookScope scope(book_with(some_layer(), other_plan()));
  const auto takes_it = [](const ConvolutionProblem& problem) {
    return choose(problem, here())->runs_like(*other_plan());
  };
  for (const double factor : {1.02, 2.5}) {   // in its bucket, and a few further on
    ConvolutionProblem larger = some_layer();
    larger.out_rows = larger.in_rows = static_cast<std::int64_t>(4000 * factor);
    larger.pairs = static_cast<std::int64_t>(30000 * factor);
    EXPECT_TRUE(takes_it(larger)) << factor;
  }
  ConvolutionProblem far = some_layer();
  far.out_rows = far.in_rows = 40000;
  far.pairs = 300000;
  EXPECT_FALSE(takes_it(far));
  ConvolutionProblem denser = some_layer();
  denser.pairs = 3000;
  EXPECT_FALSE(takes_it(denser));
  ConvolutionProblem wider = some_layer();
  wider.out_channels = 64;
  EXPECT_FALSE(takes_it(wider));
  ConvolutionProblem back = some_layer();
  back.direction = Direction::input_gradient;
  EXPECT_FALSE(takes_it(back));
}

TEST(PlanBookTest, has_the_plan_of_the_key_before_those_of_others) {
  auto book = std::make_shared<PlanBook>();
  ConvolutionProblem larger = some_layer();
  larger.out_rows = larger.in_rows = 8000;
  larger.pairs = 60000;
  const PlanPtr second = std::make_shared<const ConvolutionPlan>(
      ConvolutionPlan{.dataflow = Dataflow::fetch_on_demand, .tile_rows = 48});
  book->set(some_layer(), here(), other_plan());
  book->set(larger, here(), second);
  const PlanBookScope scope(book);
  EXPECT_TRUE(choose(some_layer(), here())->runs_like(*other_plan()));
  EXPECT_EQ(choose(larger, here()), second);
}

TEST(PlanBookTest, devices_of_the_same_numbers_have_plans_of_their_own) {
  Target other = here();
  other.name += " II";
  const PlanBookScope scope(book_with(some_layer(), other_plan()));
  EXPECT_TRUE(choose(some_layer(), here())->runs_like(*other_plan()));
  EXPECT_TRUE(choose(some_layer(), other)->runs_like(*choose_by_rules(some_layer(), other)));
}

TEST(PlanBookTest, leaves_a_dataflow_that_is_asked_for) {
  const PlanBookScope scope(book_with(some_layer(), other_plan()));
  EXPECT_EQ(choose(some_layer(), here(), Dataflow::fetch_on_demand)->dataflow,
            Dataflow::fetch_on_demand);
}

TEST(PlanBookTest, changes_places_with_another_and_keeps_its_number) {
  const auto first = book_with(some_layer(), other_plan());
  const auto empty = std::make_shared<const PlanBook>();
  const std::uint64_t before = plans_in_use();
  {
    PlanBookScope scope(first);
    const std::uint64_t with_first = plans_in_use();
    scope.use(empty);
    const std::uint64_t with_none = plans_in_use();
    EXPECT_NE(with_first, with_none);
    EXPECT_FALSE(choose(some_layer(), here())->runs_like(*other_plan()));
    scope.use(first);
    EXPECT_EQ(plans_in_use(), with_first);
    EXPECT_TRUE(choose(some_layer(), here())->runs_like(*other_plan()));
  }
  EXPECT_NE(plans_in_use(), before);
}

TEST(PlanBookTest, is_alone_and_holds_plans_that_fit) {
  const PlanBookScope scope(std::make_shared<const PlanBook>());
  EXPECT_NE(message_of([] {
              PlanBookScope(std::make_shared<const PlanBook>());
            }).find("one tuning at a time"),
            std::string::npos);
  ConvolutionPlan wrong = *other_plan();
  wrong.splits = 9;
  EXPECT_NE(message_of([&] {
              book_with(some_layer(), std::make_shared<const ConvolutionPlan>(wrong));
            }).find("splits = 9"),
            std::string::npos);
}

// Where an earlier test of the same process has asked for a choice.
const std::string kOpenBefore = "the store was open before; run this test alone, as ctest does";

/// Each in a process of its own, which opens the store of its environment once.
class StoredChoice : public testing::Test {
 protected:
  test::TemporaryFolder folder;

  template <class Work> std::string in_child(Work&& work) {
    return said_by_child([&] {
      const std::filesystem::path file = folder.path() / "plans.sqlite";
      setenv("PUMICE_PLANS", file.c_str(), 1);
      if (tune::process_plans().database() != file) return kOpenBefore;
      return work();
    });
  }
  static void store(const std::string& plan, const ConvolutionProblem& problem = some_layer(),
                    double tuned_s = 0.8) {
    tune::process_plans().put(key_of(problem, here()), {.plan = plan,
                                                        .tuned_s = tuned_s,
                                                        .untuned_s = 1,
                                                        .confidence = 0.99,
                                                        .samples = 20,
                                                        .measured_ms = 0});
  }
};

TEST_F(StoredChoice, is_taken_from_the_moment_it_is_stored) {
  EXPECT_EQ(in_child([] {
              const std::string before = choose(some_layer(), here())->name();
              store(to_text(*other_plan()));
              return before + ", then " + choose(some_layer(), here())->name();
            }),
            choose_by_rules(some_layer(), here())->name() + ", then " + other_plan()->name());
  EXPECT_EQ(in_child([] {   // another process
              return choose(some_layer(), here())->reason;
            }),
            "measured on this machine: 0.8 times the time of the untuned layers on its map");
}

TEST_F(StoredChoice, is_of_as_many_threads_as_it_was_measured_with) {
  const std::string ruled = choose_by_rules(some_layer(), here())->name();
  EXPECT_EQ(in_child([] {
              set_threads(2);
              store(to_text(*other_plan()));
              std::string said = key_of(some_layer(), here()).device.substr(here().name.size());
              for (const int count : {2, 1, 2, 3}) {
                set_threads(count);
                said += "; " + choose(some_layer(), here())->name();
              }
              return said;
            }),
            ", 2 threads; " + other_plan()->name() + "; " + ruled + "; " + other_plan()->name() +
                "; " + ruled);
}

TEST_F(StoredChoice, that_is_no_faster_is_said_to_take_the_same_time) {
  for (const double seconds : {1.0, 0.9996, 1.004}) {
    EXPECT_EQ(in_child([&] {
                store(to_text(*other_plan()), some_layer(), seconds);
                return choose(some_layer(), here())->reason;
              }),
              "measured on this machine: the same time as the untuned layers on its map");
  }
}

TEST_F(StoredChoice, serves_problems_of_nearby_sizes) {
  EXPECT_EQ(in_child([] {
              store(to_text(*other_plan()));
              ConvolutionProblem larger = some_layer();
              larger.in_rows = larger.out_rows = 10000;
              larger.pairs = 75000;
              return choose(larger, here())->name();
            }),
            other_plan()->name());
}

TEST_F(StoredChoice, is_left_out_where_it_does_not_fit) {
  for (const char* text : {R"({"dataflow":"implicit_gemm","tile_rows":96,"splits":9})",
                           R"({"dataflow":"sum_over_pairs"})", "not a plan"}) {
    EXPECT_EQ(in_child([&] {
                store(text);
                return choose(some_layer(), here())->name();
              }),
              choose_by_rules(some_layer(), here())->name())
        << text;
  }
}

TEST_F(StoredChoice, is_not_made_where_the_variable_says_off) {
  EXPECT_EQ(said_by_child([] {
              setenv("PUMICE_PLANS", "off", 1);
              if (!tune::process_plans().database().empty()) return kOpenBefore;
              store(to_text(*other_plan()));
              return choose(some_layer(), here())->name() +
                     (tune::process_plans().is_empty() ? ", none" : ", some");
            }),
            choose_by_rules(some_layer(), here())->name() + ", none");
}

TEST_F(StoredChoice, of_a_machine_without_a_name_is_never_asked_for) {
  EXPECT_EQ(in_child([] {
              Target nameless = here();
              store(to_text(*other_plan()));
              nameless.name.clear();
              return choose(some_layer(), nameless)->name();
            }),
            choose_by_rules(some_layer(), here())->name());
}

}   // namespace
}   // namespace pumice
