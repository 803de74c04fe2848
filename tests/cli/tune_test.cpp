// `pumice tune` and `pumice explain`: what they print, store and refuse.
#include <algorithm>
#include <filesystem>

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
