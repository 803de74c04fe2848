// Real data for tests, where it is at hand.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace pumice::test {

/// A file below the data folder (environment variable PUMICE_DATA, default ../shared/data beside
/// the project), or nothing when it is not there.
std::optional<std::filesystem::path> data_file(const std::string& name);

}   // namespace pumice::test

/// Defines `variable` as the path of a data file, or skips the test with a sentence.
#define PUMICE_NEEDS_DATA(variable, name)                                        \
  const auto variable##_or_not = ::pumice::test::data_file(name);                \
  if (!variable##_or_not)                                                        \
    GTEST_SKIP() << name << " is not there: set PUMICE_DATA to the data folder"; \
  const std::filesystem::path variable = *variable##_or_not
