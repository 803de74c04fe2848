// `pumice tune` and `pumice explain`: what they print, store and refuse.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

#include "program.hpp"

namespace pumice::test {
namespace {

class TuneTest : public ProgramTest {
 protected:
  TuneTest() { write_points(scan_, slope(40, 50)); }

  std::string scan_ = path("slope.ply");
  std::vector<std::string> small_ = {"second", scan_, "--voxel", "0.2", "0.2", "0.2"};

  std::vector<std::string> with(const char* command, std::vector<std::string> more) const {
    std::vector<std::string> all{command};
    all.insert(all.end(), small_.begin(), small_.end());
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(TuneTest, StoresPlansThatLaterRunsTake) {
  const auto tuned = run_json(with("tune", {"--budget-s", "20"}));
  ASSERT_GT(tuned["layers"].size(), 3u);
  for (const auto& group : tuned["groups"])
    EXPECT_NE(group["verdict"], "not measured") << group["reason"];
  EXPECT_EQ(tuned["stored"], tuned["layers"].size());
  EXPECT_TRUE(std::filesystem::exists(path("plans.sqlite")));
  const auto explained = run_json(with("explain", {}));
  ASSERT_EQ(explained["layers"].size(), tuned["layers"].size());
  for (const auto& layer : explained["layers"]) {
    const auto& all = tuned["layers"];
    const auto same = std::find_if(all.begin(), all.end(), [&](const auto& other) {
      return other["problem"] == layer["problem"] && other["rows"] == layer["rows"];
    });
    ASSERT_NE(same, all.end()) << layer["problem"];
    EXPECT_EQ((*same)["plan"], layer["plan"]);
    EXPECT_TRUE(layer["is_stored"]);
  }
}

/// Adds the keys of objects in `json`, but not of plans, which are read back as they are.
void add_keys(const nlohmann::json& json, std::set<std::string>& keys) {
  for (const auto& [key, value] : json.items()) {
    if (json.is_object()) keys.insert(key);
    if (value.is_structured() && key != "plan" && key != "untuned") add_keys(value, keys);
  }
}

TEST_F(TuneTest, PrintsNoKeyThatIsNotDocumented) {
  std::set<std::string> keys;
  add_keys(run_json(with("tune", {"--budget-s", "5", "--no-store"})), keys);
  ASSERT_GT(keys.size(), 20u);
  std::ifstream file(PUMICE_SOURCE_DIR "/docs/command_line.md");
  const std::string all{std::istreambuf_iterator<char>(file), {}};
  const std::size_t begin = all.find("### JSON of a tuning");
  ASSERT_NE(begin, std::string::npos);
  const std::string section = all.substr(begin, all.find("<!-- help", begin) - begin);
  for (const std::string& key : keys)
    EXPECT_NE(section.find("`" + key + "`"), std::string::npos) << key;
}

TEST_F(TuneTest, SaysAtCtrlCThatNothingIsKept) {
  const std::string shown = interrupted(with("tune", {"--budget-s", "300"}), "tuning [");
  EXPECT_NE(shown.find("pumice: stopped, and nothing that was measured is kept"), std::string::npos)
      << shown;
  EXPECT_FALSE(std::filesystem::exists(path("plans.sqlite")));
}

TEST_F(TuneTest, WritesATableThatOtherRunsAreGiven) {
  const std::string table = path("table.json");
  run_well(with("tune", {"--budget-s", "20", "--no-store", "--out", table}));
  EXPECT_FALSE(std::filesystem::exists(path("plans.sqlite")));
  const auto explained = run_json(with("explain", {"--plans", table}));
  for (const auto& layer : explained["layers"]) {
    const std::string reason = layer["reason"];
    EXPECT_NE(reason.find("in the table of plans"), std::string::npos) << reason;
  }
  run_well(with("run", {"--plans", table}));   // which says nothing on standard error
  const std::string unused = run(with("run", {"--plans", table, "--precision", "bf16"})).err;
  EXPECT_NE(unused.find("is of a layer that ran"), std::string::npos) << unused;
  EXPECT_NE(run_well({"plans", "import", table}).out.find("plans added and 0 replaced"),
            std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(path("plans.sqlite")));
}

TEST_F(TuneTest, ListsExportsAndImportsWhatIsStored) {
  EXPECT_NE(run_well({"plans", "list"}).out.find("0 plans"), std::string::npos);
  run_well(with("tune", {"--budget-s", "20"}));
  const auto listed = run_json({"plans", "list"});
  EXPECT_GT(listed["plans"].size(), 3u);
  EXPECT_FALSE(listed["plans"][0]["is_shipped"]);
  EXPECT_NE(run_well({"plans", "list"}).out.find("forward f32 64>64 offsets 27"),
            std::string::npos);
  const std::string table = path("mine.json");
  run_well({"plans", "export", table});
  const std::string again = run_well({"plans", "import", table}).out;
  EXPECT_NE(again.find("0 plans added and 0 replaced"), std::string::npos) << again;
  EXPECT_NE(run_well({"plans", "clear"}).out.find("0 plans of other versions"), std::string::npos);
}

TEST_F(TuneTest, RefusesATableOfAnotherMachine) {
  const std::string table = path("other.json");
  write_text(table,
             R"({"format": "pumice plans", "schema": 1, "plans": [
{"device":"NVIDIA H200","version":"0.1.0","operation":"convolution","direction":"forward",)"
             R"("problem":"forward f16 4>16 offsets 27","rows_bucket":26,"density_bucket":null,)"
             R"("plan":"{\"dataflow\":\"fetch_on_demand\"}","tuned_s":1,"untuned_s":1,)"
             R"("confidence":0,"samples":1,"measured":"2026-11-25T07:07:16.775Z"}
]})");
  expect_refusal(with("run", {"--plans", table}), {"--plans", "NVIDIA H200", "pumice tune --out"});
  expect_refusal(with("run", {"--plans", scan_}), {"it is no table of plans"});
  expect_refusal(with("tune", {"--out", path("plans.txt")}), {"--out", ".json"});
  expect_refusal({"plans", "export", path("plans.txt")}, {"FILE", ".json"});
  expect_refusal({"plans", "import", path("none.json")}, {"none.json"});
  std::string text = read_text(table);
  text.replace(text.find("fetch_on_demand"), 15, "nope");
  write_text(path("bad.json"), text);
  expect_refusal({"plans", "import", path("bad.json")}, {"bad.json: plan 1", "dataflow"});
}

TEST_F(TuneTest, NamesFewGroupsWhereTheBudgetEnds) {
  const Outcome outcome = run_well(with("tune", {"--budget-s", "0.001", "--no-store"}));
  EXPECT_NE(outcome.out.find(" groups. A larger budget"), std::string::npos) << outcome.out;
  EXPECT_EQ(outcome.out.find(" 0 %"), std::string::npos) << "what is not known is no share";
}

TEST_F(TuneTest, KeepsNothingWhereThatIsAskedFor) {
  const Outcome outcome = run_well(with("tune", {"--budget-s", "0.2", "--no-store", "--training"}));
  EXPECT_NE(outcome.out.find("second f32 training steps, with "), std::string::npos) << outcome.out;
  EXPECT_FALSE(std::filesystem::exists(path("plans.sqlite")));
}

TEST_F(TuneTest, ExplainsEveryCandidateInWords) {
  const std::string words = run_well(with("explain", {"--measure"})).out;
  EXPECT_NE(words.find("forward f32"), std::string::npos);
  EXPECT_NE(words.find("  * "), std::string::npos);
  EXPECT_NE(words.find(" us\n"), std::string::npos) << words.substr(0, 500);
}

TEST_F(TuneTest, RefusesWhatItCannotMeasure) {
  expect_refusal(with("tune", {"--budget-s", "0"}), {"--budget-s 0"});
  expect_refusal(with("tune", {"--graph"}), {"--graph", "cuda"});
  expect_refusal({"tune", "second", path("none.ply")}, {"none.ply"});
  const Outcome empty =
      run({"explain", "second", scan_, "--range", "900", "900", "1", "901", "901", "2"});
  EXPECT_EQ(empty.code, 1);
  EXPECT_NE(empty.err.find("nothing to measure"), std::string::npos) << empty.err;
}

}   // namespace
}   // namespace pumice::test
