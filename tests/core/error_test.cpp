// Errors: the user's mistakes and ours are told apart, and messages are built only on failure.
#include <pumice/core/error.hpp>

#include <gtest/gtest.h>

namespace pumice {
namespace {

TEST(Error, OfTheUserSaysWhatWasWrittenAndNothingElse) {
  try {
    PUMICE_EXPECTS(1 > 2, "threads = ", 0, ": ask for at least 1");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(), "threads = 0: ask for at least 1");
  }
}

TEST(Error, OfOursSaysWhere) {
  try {
    PUMICE_ENSURES(1 > 2, "row ", 17);
    FAIL();
  } catch (const InternalError& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("1 > 2 does not hold: row 17"), std::string::npos);
    EXPECT_NE(text.find("error_test.cpp:"), std::string::npos);
    EXPECT_NE(text.find("not in your input"), std::string::npos);
  }
}

TEST(Error, CostsNothingWhenAllIsWell) {
  int built = 0;
  const auto part = [&] { return ++built; };
  PUMICE_EXPECTS(2 > 1, part());
  PUMICE_ENSURES(2 > 1, part());
  EXPECT_EQ(built, 0);
}

}   // namespace
}   // namespace pumice
