// Tables and progress bars.
#pragma once

#include <string>
#include <vector>

namespace pumice::cli {

/// Columns that line up: text to the left, numbers to the right; cells are made printable.
class Table {
 public:
  /// A heading that begins with '<' marks a column of text.
  explicit Table(std::vector<std::string> headings);
  void add(std::vector<std::string> cells);
  void add_rule();
  /// The table as text, ending in a newline.
  std::string text() const;

 private:
  std::vector<std::string> headings_;
  std::vector<bool> left_;
  std::vector<std::vector<std::string>> rows_;   // an empty row is a rule
};

/// One line on standard error that fills up; silent where that is no terminal.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  void show(int done, int count);

 private:
  std::string what_;
  bool active_;
  int last_permille_ = -1;
};

/// 91767 -> "91,767"
std::string with_commas(long long value);

}   // namespace pumice::cli
