// Tables of plans: written whole, read back exactly, and refused with the place of the mistake.
#include "plan/store/plan_table.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include <pumice/core/error.hpp>

#include "plan/stored_plans.hpp"
#include "support/message_of.hpp"
#include "support/temporary_folder.hpp"

namespace pumice::tune {
namespace {

using namespace test;

TEST(PlanTable, IsReadBackAsItWasWritten) {
  const TemporaryFolder folder;
  std::vector<StoredPlan> plans{
      {.key = key_of("a \"quoted\" \\ problem"), .record = record_of("x")},
      {.key = key_of("b", 0), .record = record_of("y", 1764000000123)}};
  plans[1].key.density_bucket = -3;
  plans[1].record.tuned_s = 0.1 + 0.2;   // not the nearest double of any short text
  write_plan_table(folder / "table.json", plans);
  EXPECT_EQ(read_plan_table(folder / "table.json"), plans);
  write_plan_table(folder / "table.json", {});
  EXPECT_TRUE(read_plan_table(folder / "table.json").empty());
  EXPECT_EQ(folder.files(), 1);
}

TEST(PlanTable, WritesTimesAsPeopleReadThem) {
  EXPECT_EQ(utc_text(0), "1970-01-01T00:00:00.000Z");
  EXPECT_EQ(utc_text(1'764'000'000'123), "2025-11-24T16:00:00.123Z");
  EXPECT_EQ(utc_text(951'782'400'000), "2000-02-29T00:00:00.000Z");
}

/// `json` with one thing replaced, and what is said of it.
std::string refusal(const std::string& from, const std::string& to) {
  const TemporaryFolder folder;
  write_plan_table(folder / "table.json", {{.key = key_of("p"), .record = record_of("x")}});
  std::ifstream file(folder / "table.json");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  const auto at = text.find(from);
  if (at == std::string::npos) return "no " + from + " in " + text;
  text.replace(at, from.size(), to);
  std::ofstream(folder / "table.json") << text;
  return message_of([&] { read_plan_table(folder / "table.json"); });
}

TEST(PlanTable, SaysWhereAMistakeIs) {
  struct Case {
    const char* from;
    const char* to;
    const char* said;
  };
  const Case cases[] = {
      {"{\"format\"", "x", "it is no table of plans"},
      {"pumice plans", "other", "it is no table of plans"},
      {"\"schema\": 1", "\"schema\": 2", "its schema is not the one"},
      {"\"plans\": [", "\"plans\": 3, \"more\": [", "its \"plans\" are no list"},
      {"\"problem\":\"p\",", "", "plan 1: problem is missing"},
      {"\"problem\":\"p\"", "\"problem\":7", "plan 1: problem is not a text"},
      {"\"problem\":\"p\"", "\"problem\":\"\\u001b[2J\"", "give printable ASCII"},
      {"\"rows_bucket\":33", "\"rows_bucket\":3.5", "plan 1: rows_bucket is not a whole number"},
      {"\"rows_bucket\":33", "\"rows_bucket\":18446744073709551615", "is not a whole number"},
      {"\"rows_bucket\":33", "\"rows_bucket\":4294967329", "take what rows_bucket() gives"},
      {"\"tuned_s\":0.0008", "\"tuned_s\":-1", "tuned_s = -1: give a positive number"},
      {"\"confidence\":0.99", "\"confidence\":2", "confidence = 2"},
      {"1970-01-01", "1970-02-30", "it is a time such as"},
      {"00:00:01", "24:00:01", "it is a time such as"},
      {"00:00:01", "-1:00:01", "it is a time such as"},
      {"\"samples\":40", "\"samples\":[[[[[[]]]]]]", "samples is not a whole number"},
  };
  for (const Case& each : cases) {
    const std::string said = refusal(each.from, each.to);
    EXPECT_NE(said.find(each.said), std::string::npos) << each.to << ": " << said;
    EXPECT_NE(said.find("table.json"), std::string::npos) << said;
  }
}

TEST(PlanTable, DeepNestingCostsNoMemory) {
  const TemporaryFolder folder;
  std::ofstream(folder / "deep.json") << std::string(5'000'000, '[');
  EXPECT_NE(message_of([&] { read_plan_table(folder / "deep.json"); }).find("no table of plans"),
            std::string::npos);
}

}   // namespace
}   // namespace pumice::tune
