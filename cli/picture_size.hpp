// `--size WIDTH HEIGHT`, of commands that draw a `--picture`.
#pragma once

#include <filesystem>
#include <vector>

#include "picture.hpp"

namespace CLI {
class App;
class Option;
}   // namespace CLI

namespace pumice::cli {

class PictureSize {
 public:
  /// Must stay where it is, as long as `command` reads a command line.
  void add_to(CLI::App& command);
  /// UserError where a size was given, and no picture is asked for.
  void check(const std::filesystem::path& picture) const;
  void set(PictureOptions& options) const;

 private:
  std::vector<int> pixels_{1600, 900};
  const CLI::Option* option_ = nullptr;
};

}   // namespace pumice::cli
