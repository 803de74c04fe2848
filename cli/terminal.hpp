// Tables, progress bars, and numbers in words.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
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

/// What is said of progress where standard error is no terminal.
enum class Elsewhere { nothing, lines };

/// One line on standard error that fills up. Where that is no terminal: silent, or a line at the
/// beginning and then one every ten seconds.
class ProgressBar {
 public:
  explicit ProgressBar(std::string what, Elsewhere elsewhere = Elsewhere::nothing);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// `part` of the next one is done too, 0 to 1.
  void show(int done, int count, double part = 0);
  /// Takes the bar away, for a line to be printed in its place; the next `show` draws it again.
  void clear();

 private:
  void show_line(int done, int count);

  std::string what_;
  bool active_;
  bool in_lines_;
  std::optional<std::chrono::steady_clock::time_point> last_line_;
  int last_permille_ = -1;
};

/// 91767 -> "91,767"
std::string with_commas(long long value);

/// counted(1, "scan") -> "1 scan", counted(1200, "scan") -> "1,200 scans"; `plural` where it does
/// not end in s.
std::string counted(long long number, std::string_view noun, std::string_view plural = {});

}   // namespace pumice::cli
