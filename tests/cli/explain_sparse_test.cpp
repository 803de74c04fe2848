// `pumice explain sparse` and `pumice tune sparse` say what a product runs by, and keep it.
// Covers sparse_passes, and the command sparse of explain and tune.
#include <string>
#include <vector>

#include "small_matrix.hpp"

namespace pumice::test {
namespace {

using Json = nlohmann::json;

using ExplainSparseTest = SmallMatrixTest;

TEST_F(ExplainSparseTest, says_what_was_chosen_and_why) {
  const Json found = run_json({"explain", "sparse", matrix(), "--channels", "8", "--training"});
  std::vector<std::string> problems;
  for (const Json& product : found.at("products")) {
    problems.push_back(product.at("problem"));
    EXPECT_EQ(product.at("name"), "csr/ranges of 65536/8 ahead");
    EXPECT_FALSE(product.at("reason").get<std::string>().empty());
    EXPECT_GE(product.at("candidates").size(), 3u);
  }
  EXPECT_EQ(problems,
            (std::vector<std::string>{"spmm forward sum f32 channels 8 weighted",
                                      "spmm features_gradient sum f32 channels 8 weighted",
                                      "spmm values_gradient sum f32 channels 8 weighted"}));
  const Json dots =
      run_json({"explain", "sparse", matrix(), "--operator", "sddmm", "--heads", "2", "--measure"});
  const Json& product = dots.at("products").at(0);
  EXPECT_EQ(product.at("problem"), "sddmm forward f32 channels 128 heads 2");
  for (const Json& one : product.at("candidates"))
    EXPECT_GT(one.at("measured_s"), 0);
}

TEST_F(ExplainSparseTest, tuning_writes_a_table_that_explain_takes) {
  const std::vector<std::string> product{matrix(), "--channels", "8"};
  std::vector<std::string> tune{"tune", "sparse"}, explain{"explain", "sparse"};
  for (std::vector<std::string>* words : {&tune, &explain})
    words->insert(words->end(), product.begin(), product.end());
  for (const char* word : {"--budget-s", "10", "--no-store", "--out"})
    tune.emplace_back(word);
  tune.push_back(path("plans.json"));
  const Json tuned = run_json(tune);
  ASSERT_EQ(tuned.at("layers").size(), 1u);
  EXPECT_EQ(tuned.at("stored"), 0);
  explain.emplace_back("--plans");
  explain.push_back(path("plans.json"));
  const Json found = run_json(explain);
  EXPECT_EQ(found.at("products").at(0).at("plan"), tuned.at("layers").at(0).at("plan"));
  EXPECT_NE(
      found.at("products").at(0).at("reason").get<std::string>().find("in the table of plans"),
      std::string::npos);
}

}   // namespace
}   // namespace pumice::test
