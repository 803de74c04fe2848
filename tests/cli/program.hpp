// Runs the built `pumice` as a user would, in a folder of its own, and hands back what it said.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <pumice/core/tensor.hpp>

namespace pumice::test {

struct Outcome {
  int code = -1;
  std::string out;
  std::string err;
};

std::string read_text(const std::filesystem::path& path);
void write_text(const std::filesystem::path& path, const std::string& text);

/// The `pumice` beside this test program: both may have been carried to another machine.
std::string program_path();

/// Starts the program without a shell; standard output and error go to files in `folder`.
Outcome run_program(const std::filesystem::path& folder, const std::vector<std::string>& arguments,
                    const std::string& program = program_path());

/// A folder that goes when the test does.
class ProgramTest : public ::testing::Test {
 protected:
  ProgramTest();
  ~ProgramTest() override;

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  Outcome run(const std::vector<std::string>& arguments) const;

  /// "1 files", "1 points": a number and its noun do not agree.
  static void expect_grammar(const std::string& text);

  /// Expects success and silence on standard error.
  Outcome run_well(const std::vector<std::string>& arguments) const;

  /// Expects success; what a person at a terminal sees, with all that moves the cursor.
  static std::string on_a_terminal(std::vector<std::string> arguments);

  /// Expects that Ctrl-C ends it; the same, of somebody who presses it when `marker` is shown.
  static std::string interrupted(std::vector<std::string> arguments, const std::string& marker);

  /// What is shown, and how the program ended; Ctrl-C once `marker` is shown, unless it is empty.
  static std::pair<std::string, int> shown_on_a_terminal(std::vector<std::string> arguments,
                                                         const std::string& marker);

  /// The same of a process that does `work`.
  static std::pair<std::string, int> shown_on_a_terminal(const std::function<void()>& work,
                                                         const std::string& marker);

  /// Expects success; all of standard output is one JSON value.
  nlohmann::json run_json(std::vector<std::string> arguments) const;

  /// Expects failure: one sentence on standard error that names each of `named`, nothing else said.
  void expect_refusal(const std::vector<std::string>& arguments,
                      const std::vector<std::string>& named) const;

  std::filesystem::path folder_;
};

using Point = std::array<float, 4>;   // x, y, z, intensity

/// An ascii .ply of these points.
void write_points(const std::string& path, const std::vector<Point>& points);

/// Points on a gentle slope before the sensor, 0.05 m apart: dense enough for every layer of every
/// network to have pairs at its usual voxel size, few enough to run them all.
std::vector<Point> slope(int rows, int columns);

/// The sites of a result with the values of their rows, in coordinate order.
template <class T>
std::vector<std::pair<std::vector<std::int32_t>, std::vector<T>>> rows_of(const Tensor& coordinates,
                                                                          const Tensor& features) {
  std::vector<std::pair<std::vector<std::int32_t>, std::vector<T>>> rows;
  const std::int64_t axes = coordinates.extent(1);
  const std::int64_t channels = features.extent(1);
  for (std::int64_t row = 0; row < coordinates.rows(); ++row) {
    const std::int32_t* site = coordinates.data<std::int32_t>() + row * axes;
    const T* values = features.data<T>() + row * channels;
    rows.push_back({{site, site + axes}, {values, values + channels}});
  }
  std::sort(rows.begin(), rows.end());
  return rows;
}

}   // namespace pumice::test
